"""Repositories with traps, under every command that touches git: no program runs, nothing is written, nothing waits."""

from __future__ import annotations

import json
import subprocess
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from git_traps import COMMITTED, REFUSED, Trapped, git, programs
from users import NAMES, User, become

pytestmark = [pytest.mark.hostile, pytest.mark.attack("A19"), pytest.mark.timeout(300)]

Trap = Callable[[Trapped], None]
PACKAGES = sysconfig.get_path("purelib")

SCRIPT = """
[[turn]]
answer = { calls = [{ name = "file_read", arguments = { path = "a.txt" } }] }
[[turn]]
answer = { calls = [{ name = "strict_patch", arguments = { path = "a.txt", old = "one", new = "two" } }] }
[[turn]]
answer = "Done."
"""
MANY = """
import io, json, sys
from pawl import __main__
ended = []
for words in json.load(sys.stdin):
    sys.argv = ["pawl", *words]
    sys.stdin, sys.stdout, sys.stderr = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(3))
    code = __main__.main()
    ended.append([code, *(stream.buffer.getvalue().decode() for stream in (sys.stdout, sys.stderr))])
json.dump(ended, sys.__stdout__)
"""


Call = tuple[int, str, str]
"""The exit code, and what was written to both streams."""


@pytest.fixture(params=NAMES, scope="module")
def user(request: pytest.FixtureRequest) -> User:
    user = become(request.param)
    if user.becoming and subprocess.run(user.words(["test", "-r", PACKAGES]), check=False).returncode:
        pytest.skip("an ordinary user cannot read the packages that Pawl needs")
    return user


@pytest.fixture(scope="module")
def root(user: User) -> Iterator[Path]:
    with user.folder() as root:
        yield root


def pawl(user: User, root: Path, calls: Sequence[Sequence[str]], **variables: str) -> list[Call]:
    """Calls of Pawl as that user, one after the other in one process."""
    user.own(root)
    extra = {"PYTHONPATH": f"{user.source}:{PACKAGES}", "PAWL_STATE": str(root / "state"), **variables}
    with user.start_python(MANY, home=root, env=extra, stdin=-1, stdout=-1, stderr=-1) as process:
        out, err = process.communicate(json.dumps(calls).encode(), timeout=280)
    assert process.returncode == 0, err.decode()
    return [(code, said, told) for code, said, told in json.loads(out)]


def made(root: Path, name: str) -> Trapped:
    (root / name).mkdir()
    (root / name / "script.toml").write_text(SCRIPT)
    return Trapped.made(root / name)


def do(it: Trapped, folder: str = ".") -> list[str]:
    words = ["do", "-C", str(it.workspace / folder), "change", "a.txt", "--approve", "never", "--commit", "--json"]
    return [*words, "--model", f"scripted:{it.root}/script.toml"]


def others(it: Trapped) -> list[list[str]]:
    """What else asks git: capturing what a command wrote, finding files, taking back."""
    where = ["-C", str(it.workspace)]
    writes = ["--", "sh", "-c", "echo 2 > kept.log; echo 2 > b.txt"]
    return [
        ["run", *where, "--apply", *writes],
        ["locate", *where, "the text of a"],
        ["history", *where],
        ["undo", *where],
    ]


@dataclass(frozen=True)
class Came:
    """What became of the commands in one repository."""

    it: Trapped
    head: str
    """Before."""
    done: Call
    rest: list[Call]

    @property
    def body(self) -> dict:
        return json.loads(self.done[1])


def came(user: User, root: Path, traps: Sequence[Trap]) -> dict[Trap, Came]:
    every: dict[Trap, Trapped] = {}
    heads: dict[Trap, str] = {}
    for trap in traps:
        every[trap] = made(root, trap.__name__)
        heads[trap] = git(every[trap].workspace, "rev-parse", "HEAD")
        trap(every[trap])
    ended = iter(pawl(user, root, [call for it in every.values() for call in (do(it), *others(it))]))
    return {trap: Came(it, heads[trap], next(ended), [next(ended) for _ in others(it)]) for trap, it in every.items()}


@pytest.fixture(scope="module")
def in_committed(user: User, root: Path) -> dict[Trap, Came]:
    return came(user, root, COMMITTED)


@pytest.fixture(scope="module")
def in_refused(user: User, root: Path) -> dict[Trap, Came]:
    return came(user, root, [*REFUSED])


@pytest.mark.parametrize("trap", COMMITTED, ids=lambda trap: trap.__name__)
def test_a_commit_runs_nothing_that_the_repository_names(in_committed: dict[Trap, Came], trap: Trap):
    found = in_committed[trap]
    assert found.it.marks == []
    assert found.done[0] == 0 and found.body["commit"], (found.body["notes"], found.done[2])
    shown = subprocess.run(
        ["git", "cat-file", "-p", found.body["commit"]],
        env={"PATH": "/usr/bin:/bin", "GIT_NO_REPLACE_OBJECTS": "1", "GIT_DIR": str(bare(found.it))},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert f"parent {found.head}\n" in shown and "author Kim <kim@example.org>" in shown
    assert (found.it.folder / "refs/heads/main").read_text().strip() == found.body["commit"]


@pytest.mark.parametrize("trap", REFUSED, ids=lambda trap: trap.__name__)
def test_what_cannot_be_committed_without_trust_is_refused_and_the_change_stands(
    in_refused: dict[Trap, Came], trap: Trap
):
    found = in_refused[trap]
    assert found.it.marks == []
    assert (found.done[0], found.body["commit"]) == (0, ""), found.done
    notes = found.body["notes"]
    assert any(note.startswith("not committed: ") and REFUSED[trap] in note for note in notes), notes
    assert (found.it.workspace / "a.txt").read_text() == "two\n"
    assert not list(found.it.workspace.rglob("*.lock"))


def test_what_else_asks_git_answers_and_runs_nothing(in_committed: dict[Trap, Came], in_refused: dict[Trap, Came]):
    for trap, found in {**in_committed, **in_refused}.items():
        run, locate, history, undo = found.rest
        assert not any("Traceback" in err for _, _, err in found.rest), trap
        assert [code for code, _, _ in (locate, history, undo)] == [0, 0, 0], (trap, found.rest)
        # What git tracks is promoted although it is ignored.
        assert "b.txt" in run[1] + run[2], (trap, run)
        if trap in COMMITTED:
            assert "kept.log" in run[1] + run[2], (trap, run)


def test_no_command_runs_what_the_repository_names(user: User, root: Path):
    it = made(root, "every command")
    programs(it)
    names = ("status", "undo", "redo", "diff", "verify", "fix", "doctor", "memory", "checkpoint")
    ask = ["ask", "-C", str(it.workspace), "what is in a.txt?", "--model", f"scripted:{it.root}/script.toml"]
    calls = [do(it), *([name, "-C", str(it.workspace)] for name in names), ask]
    said = pawl(user, root, calls)
    assert not any("Traceback" in err for _, _, err in said)
    assert it.marks == []


def test_the_variables_of_the_caller_do_not_lead_git_away(user: User, root: Path):
    it, other = made(root, "variables"), made(root, "other")
    programs(other)
    for name in ("git-log", "git-ls-files", "git-update-index", "git"):
        it.program(it.root / "bin" / name, f"exec-{name}")
    evil, ran = str(it.evil), it.root / "ran"
    variables = {
        "GIT_DIR": str(other.folder),
        "GIT_WORK_TREE": str(other.workspace),
        "GIT_INDEX_FILE": str(other.folder / "index"),
        "GIT_OBJECT_DIRECTORY": str(other.folder / "objects"),
        "GIT_COMMON_DIR": str(other.folder),
        "GIT_CONFIG": str(other.folder / "config"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": evil,
        "GIT_CONFIG_PARAMETERS": f"'core.fsmonitor'='{evil}'",
        "GIT_EXEC_PATH": str(it.root / "bin"),
        "GIT_TRACE": str(ran / "trace"),
        "GIT_TRACE2": str(ran / "trace2"),
        "GIT_TRACE2_EVENT": str(ran / "trace2-event"),
        "PATH": f"{it.root}/bin:/usr/local/bin:/usr/bin:/bin",
        **{f"GIT_{name}": evil for name in ("EXTERNAL_DIFF", "SSH", "SSH_COMMAND", "ASKPASS", "EDITOR", "PAGER")},
    }
    done, run, *_ = pawl(user, root, [do(it), *others(it)], **variables)
    assert it.marks == [] and other.marks == []
    commit = json.loads(done[1])["commit"]
    assert commit and commit == (it.folder / "refs/heads/main").read_text().strip(), done
    assert "kept.log" in run[1] + run[2]


def test_a_bare_repository_inside_of_a_clone_is_no_repository(user: User, root: Path):
    it = made(root, "clone")
    sub = it.workspace / "docs/sub"
    git(it.root, "clone", "-q", "--bare", str(it.workspace), str(sub))
    sub.joinpath("config").write_text(
        f'[core]\nbare = false\nworktree = .\nfsmonitor = {it.evil} sub\n[filter "x"]\nclean = {it.evil} clean\n'
    )
    (sub / "info/attributes").write_text("* filter=x\n")
    (sub / "a.txt").write_text("one\n")
    head = git(it.workspace, "rev-parse", "HEAD")
    done, *_ = pawl(user, root, [do(it, "docs/sub"), ["locate", "-C", str(sub), "a text"]])
    assert it.marks == []
    assert any("is not a git repository" in note for note in json.loads(done[1])["notes"]), done
    assert (it.folder / "refs/heads/main").read_text().strip() == head


@pytest.mark.parametrize(
    ("trap", "words"),
    [
        (programs, ("-c", "core.pager=cat", "status")),
        *((trap, ("add", "-A")) for trap in REFUSED if trap.__name__.startswith("filters")),
        *((trap, ("log", "--stat")) for trap in REFUSED if trap.__name__.startswith("missing")),
        (COMMITTED[1], ("commit", "--allow-empty", "-m", "x")),
        (COMMITTED[2], ("status",)),
        (COMMITTED[3], ("status",)),
    ],
)
def test_an_ordinary_git_does_fall_into_the_traps(tmp_path: Path, trap, words: tuple[str, ...]):
    """Otherwise the tests above would prove nothing."""
    it = Trapped.made(tmp_path)
    trap(it)
    (it.workspace / "a.txt").write_text("two\n")
    subprocess.run(["git", *words], cwd=it.workspace, capture_output=True, timeout=30, check=False)
    assert it.marks != []


def bare(it: Trapped) -> Path:
    """The repository's objects without its configuration, for looking at what was made."""
    folder = it.root / "look"
    (folder / "refs").mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "objects").symlink_to(it.folder / "objects")
    return folder
