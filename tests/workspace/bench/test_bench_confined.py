"""Benches in the real sandbox, as root and as an ordinary user."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from users import NAMES, User, become
from workspace.bench.stand import Stand, expected, shell
from workspace.bench.test_random_scripts import script_of, tree_of
from world import lay, snapshot

from pawl.core.change import Change, ChangeSet, Node, blob_digest
from pawl.core.execution import Execution, Secrets
from pawl.sandbox.choice import ChosenSandbox
from pawl.sandbox.visibility import Surroundings
from pawl.workspace.bench import BenchKind
from pawl.workspace.capture import Capture, HeldBack, HeldReason

pytestmark = pytest.mark.hostile

DRIVER = """
import json, os, sys
from pathlib import Path
from pawl.core.errors import PawlError
from pawl.core.execution import Execution, Secrets
from pawl.settings.guardrails import preset
from pawl.sandbox.visibility import Surroundings
from pawl.sandbox.choice import ChosenSandbox
from pawl.store import Store
from pawl.workspace.bench import Bench, BenchKind, BenchSettings

folder, ground, *scripts = sys.argv[1:]
folder = Path(folder)
sandbox = ChosenSandbox(Surroundings(home=str(folder / "home")))
blobs = Store.open(folder / "state").blobs
settings = BenchSettings(ground=BenchKind(ground))
said = []
with Bench.create(folder / "workspace", folder / "benches", sandbox, blobs, preset("standard"), settings) as bench:
    for script in scripts:
        done = bench.run(Execution(argv=("sh", "-c", script)))
        said.append((done.code, done.stdout.text, done.stderr.text))
    captured = [bench.capture() for _ in range(2)]
    look = Execution(argv=("sh", "-c", "stat -c '%n %a' . *"), secrets=Secrets.SHOWN)
    modes = bench.run(look).stdout.text
    again = Bench.create(folder / "workspace", folder / "benches", sandbox, blobs, preset("standard"), settings)
    again.apply(captured[0].changes, blobs)
    applied = again.capture().changes.digest
    again.apply(captured[0].changes.inverted(), blobs)
    left = len(again.capture().changes)
    again.discard()
print(json.dumps({
    "said": said,
    "changes": sorted(ascii(change.path) for change in captured[0].changes),
    "digests": [one.changes.digest for one in captured] + [applied],
    "left": left,
    "modes on the bench": modes,
    "modes": {ascii(change.path): change.after.mode for change in captured[0].changes if change.after},
    "held": sorted([ascii(held.path), held.reason] for held in captured[0].held),
    "conflicts": [ascii(one.path) for one in captured[0].conflicts],
    "benches": os.listdir(folder / "benches"),
}))
"""


@pytest.fixture
def confined(stand: Stand, tmp_path: Path) -> Stand:
    stand.sandbox = ChosenSandbox(Surroundings(home=str(tmp_path / "home")))
    return stand


@pytest.fixture(params=NAMES)
def somebody(request: pytest.FixtureRequest) -> User:
    return become(request.param)


@pytest.fixture
def theirs(somebody: User) -> Iterator[Path]:
    with somebody.folder() as folder:
        lay(folder, {"workspace/": None, "home/": None})
        yield folder


def drive(user: User, folder: Path, ground: BenchKind, *scripts: str) -> dict:
    user.own(folder)
    pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    process = user.start_python(DRIVER, str(folder), ground, *scripts, home=folder, **pipes)
    out, err = process.communicate(timeout=90)
    assert process.returncode == 0, err.decode()
    return json.loads(out)


@pytest.mark.spec("F2", "F3", "F4")
def test_a_confined_command_changes_the_bench_only(confined: Stand):
    before = snapshot(confined.workspace)
    bench = confined.bench()
    done = shell(bench, "pwd; rm README.md; echo new > new; chmod 700 src; mkdir empty; mv run.sh src/")
    assert done.stdout.text == f"{confined.workspace}\n"
    assert bench.capture().changes.paths == {"README.md", "new", "src", "empty", "run.sh", "src/run.sh"}
    assert snapshot(confined.workspace) == before


@pytest.mark.attack("A13", "A18")
def test_what_would_run_later_does_not_reach_the_workspace(confined: Stand):
    subprocess.run(["git", "init", "-q", confined.workspace], check=True)
    before = snapshot(confined.workspace)
    inode = (confined.workspace / ".git").stat().st_ino
    bench = confined.bench()
    shell(
        bench,
        "mv .git .git_old || mkdir -p .git/hooks/new || touch .git/commondir || echo refused > result;"
        "mkdir .vscode; echo evil > .vscode/tasks.json; echo evil > pawl.toml; echo evil > AGENTS.md",
    )
    captured = bench.capture()
    assert captured.changes.paths == {"result"}
    assert {held.path for held in captured.held} == {".vscode", ".vscode/tasks.json", "pawl.toml", "AGENTS.md"}
    assert snapshot(confined.workspace) == before
    assert (confined.workspace / ".git").stat().st_ino == inode


@pytest.mark.spec("A15", "B13")
def test_a_confined_command_reads_no_secret_and_its_changes_of_one_are_held_back(confined: Stand):
    lay(confined.workspace, {".env": b"KEY=canary\n", "deploy/prod.pem": b"canary\n"})
    bench = confined.bench()
    done = bench.run(Execution(argv=("sh", "-c", "cat .env deploy/prod.pem; echo evil > .env")))
    assert not done.ok
    assert "canary" not in done.stdout.text + done.stderr.text
    assert bench.capture() == Capture()
    assert (confined.workspace / ".env").read_text() == "KEY=canary\n"
    removing = confined.bench()
    shell(removing, "rm -f .env; mv deploy/prod.pem moved; test ! -s moved; rm moved")
    assert removing.capture() == Capture(
        held=(HeldBack(".env", HeldReason.SECRET), HeldBack("deploy/prod.pem", HeldReason.SECRET))
    )
    shown = shell(bench, "cat .env; echo changed > .env", secrets=Secrets.SHOWN)
    assert shown.stdout.text == "KEY=canary\n"
    assert bench.capture() == Capture(held=(HeldBack(".env", HeldReason.SECRET),))


def test_edits_and_confined_commands_alternate_on_the_same_paths(confined: Stand):
    bench = confined.bench()
    bench.files.delete("src/main.py")
    shell(bench, "test ! -e src/main.py && rm src/greeter.py && rmdir src")
    bench.files.write("src/main.py", b"1")
    shell(bench, "test $(cat src/main.py) = 1 && test $(ls src) = main.py && echo 2 > src/two && rm src/main.py")
    bench.files.write("src/two", b"3")
    shell(bench, "test $(cat src/two) = 3 && mv src moved && mkdir src")
    assert bench.capture().changes.paths == {"src/main.py", "src/greeter.py", "moved", "moved/two"}


def test_a_workspace_whose_path_is_full_of_signs_is_shown_at_its_own_place(confined: Stand, tmp_path: Path):
    confined.workspace = lay(tmp_path / "a, b:c=d \\e 'ü' \"$x\"", {"x": b"1"})
    bench = confined.bench()
    assert shell(bench, "pwd; echo 2 > x").stdout.text == f"{confined.workspace}\n"
    assert bench.capture().changes == ChangeSet(
        (Change("x", Node.file(blob_digest(b"1")), Node.file(blob_digest(b"2\n"))),)
    )


@pytest.mark.parametrize("ground", list(BenchKind))
def test_what_a_command_closed_to_its_owner_is_read_all_the_same(somebody: User, theirs: Path, ground: BenchKind):
    lay(theirs / "workspace", {"old": b"old", "kept/a": b"a", "shut/x": b"x"})
    (theirs / "workspace/shut").chmod(0o555)
    before = snapshot(theirs / "workspace")
    answer = drive(
        somebody,
        theirs,
        ground,
        "mkdir -p d/e; echo x > d/e/f; chmod 000 d/e/f d/e; chmod 311 d; echo y > old; chmod 000 old; rm -r kept;"
        "mkdir ro; echo x > ro/x; chmod 555 ro; chmod 755 shut; echo y > shut/x; rm -f shut/y; chmod 555 shut",
        "stat -c %a old d; chmod 511 .",
    )
    assert answer["said"] == [[0, "", ""], [0, "0\n311\n", ""]]
    assert answer["changes"] == ["'d'", "'d/e'", "'d/e/f'", "'kept'", "'kept/a'", "'old'", "'ro'", "'ro/x'", "'shut/x'"]
    assert answer["modes"] == {
        "'d'": 0o311, "'d/e'": 0, "'d/e/f'": 0, "'old'": 0, "'ro'": 0o555, "'ro/x'": 0o644, "'shut/x'": 0o644,
    }  # fmt: skip
    assert answer["modes on the bench"] == ". 511\nd 311\nold 0\nro 555\nshut 555\n"
    assert (answer["held"], answer["conflicts"], answer["left"], answer["benches"]) == ([], [], 0, [])
    assert len(set(answer["digests"])) == 1
    assert snapshot(theirs / "workspace") == before


def test_what_the_user_closed_in_the_workspace_is_held_back(theirs: Path, somebody: User):
    lay(theirs / "workspace", {"closed": b"x", "room/x": b"x", "open": b"x"})
    (theirs / "workspace/closed").chmod(0o000)
    (theirs / "workspace/room").chmod(0o000)
    answer = drive(somebody, theirs, BenchKind.OVERLAY, "rm -f closed; echo y > open; touch room/x || true")
    if somebody.uid == 0:
        assert answer["held"] == []
    else:
        assert answer["held"] == [["'closed'", "unreadable"]]
        assert answer["changes"] == ["'open'"]
    assert (theirs / "workspace/closed").stat().st_mode & 0o777 == 0


@pytest.mark.spec("F3")
@pytest.mark.parametrize("ground", list(BenchKind))
def test_random_scripts_in_the_sandbox_are_captured_exactly(somebody: User, ground: BenchKind, theirs: Path):
    for seed in range(2000, 2003):
        chance = random.Random(seed)
        folder = theirs / str(seed)
        workspace = tree_of(chance, folder / "workspace")
        (folder / "home").mkdir()
        before = snapshot(workspace)
        script = script_of(chance, 10)
        answer = drive(somebody, folder, ground, script)
        rehearsal = folder / "rehearsal"
        subprocess.run(["cp", "-a", workspace, rehearsal], check=True)
        subprocess.run(somebody.words(["sh", "-c", script]), cwd=rehearsal, check=True, capture_output=True)
        wanted = expected(before, snapshot(rehearsal))
        assert set(answer["digests"]) == {wanted.digest}, (seed, answer["changes"], sorted(wanted.paths))
        assert answer["left"] == 0
        assert snapshot(workspace) == before
