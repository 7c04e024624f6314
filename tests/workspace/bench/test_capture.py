"""What a command changed on a bench, read off as a change set."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from workspace.bench.stand import Stand, nodes, rehearsed, shell
from world import lay, snapshot

from pawl.core.change import EMPTY, Change, ChangeSet, Node, blob_digest
from pawl.core.errors import MissingBlob
from pawl.workspace.capture import Capture, HeldBack, HeldReason

WEIRD = b"odd \xff\n\tname'\"\\$"


def file(text: str, mode: int = 0o644) -> Node:
    return Node.file(blob_digest(text.encode()), mode)


@pytest.mark.spec("F2", "F3")
def test_a_written_a_created_and_a_deleted_file_are_changes_and_the_workspace_is_untouched(stand: Stand):
    before = snapshot(stand.workspace)
    bench = stand.bench()
    shell(bench, "echo new > src/new.py; echo more >> README.md; rm run.sh")
    captured = bench.capture()
    readme = (stand.workspace / "README.md").read_text()
    run = (stand.workspace / "run.sh").read_text()
    assert captured == Capture(
        changes=ChangeSet.of(
            [
                Change("README.md", file(readme), file(readme + "more\n")),
                Change("run.sh", file(run, 0o755), None),
                Change("src/new.py", None, file("new\n")),
            ]
        )
    )
    assert snapshot(stand.workspace) == before
    assert all(stand.blobs.get(blob) is not None for blob in captured.changes.blobs)


@pytest.mark.parametrize(
    "script",
    [
        "touch README.md src/greeter.py; touch -h latest; touch src",
        "chmod 600 README.md && chmod 644 README.md",
        "cp README.md x && cat x > README.md && rm x",
        "cp -p run.sh x && mv x run.sh",
        "mkdir d && rmdir d",
        "mv src other && mv other src",
        "ln -sf README.md latest",
        "cp -a src saved && rm -r src && mkdir src && cp -a saved/. src && rm -r saved",
    ],
)
def test_what_stays_the_same_is_no_change(stand: Stand, script: str, tmp_path: Path):
    assert rehearsed(stand.workspace, script, tmp_path / "rehearsal") == EMPTY
    bench = stand.bench()
    shell(bench, script)
    assert bench.capture() == Capture()


@pytest.mark.parametrize(
    "script",
    [
        "rm README.md && mkdir README.md && echo x > README.md/x",
        "rm -r src && echo file > src",
        "rm -r src && ln -s README.md src",
        "rm latest && echo file > latest",
        "rm latest && mkdir latest && echo x > latest/x",
        "rm README.md && ln -s src/main.py README.md",
        "rm -r src && mkdir src && echo x > src/main.py && mkdir src/greeter.py",
        "mkdir -p a/b/c && chmod 700 a/b && rm -r src && mv a src",
        "chmod 700 src && chmod 755 README.md && chmod 0751 run.sh",
        "ln -sf src/main.py latest",
        "ln README.md hard && echo x >> hard",
        "mv src/main.py README.md && mv README.md src/main.py && mv run.sh src/run",
        "mkdir empty empty/inner && chmod 500 empty/inner",
        ": > README.md; truncate -s 1M sparse",
        "for i in 1 2 3; do rm -r src; mkdir src; echo $i > src/n; done",
    ],
)
def test_a_change_of_kind_mode_or_place_is_what_two_full_looks_say(stand: Stand, script: str, tmp_path: Path):
    bench = stand.bench()
    wanted = rehearsed(stand.workspace, script, tmp_path / "rehearsal")
    shell(bench, script)
    assert bench.capture() == Capture(changes=wanted)


def test_names_of_any_bytes_are_captured_and_come_back_the_same(stand: Stand):
    odd = stand.workspace / os.fsdecode(WEIRD)
    odd.write_text("before")
    bench = stand.bench()
    shell(bench, 'for f in odd*; do echo after > "$f"; cp "$f" "new$f"; mkdir "dir$f"; done')
    assert bench.capture().changes == ChangeSet.of(
        [
            Change(os.fsdecode(WEIRD), file("before"), file("after\n")),
            Change(os.fsdecode(b"new" + WEIRD), None, file("after\n")),
            Change(os.fsdecode(b"dir" + WEIRD), None, Node.directory()),
        ]
    )


def test_a_path_longer_than_the_kernel_takes_is_captured(stand: Stand, tmp_path: Path):
    bench = stand.bench()
    script = (
        "i=0; while [ $i -lt 60 ]; do mkdir {0} && cd -P {0} || exit 1; i=$((i+1)); done; echo deep > bottom".format(
            "d" * 100
        )
    )
    shell(bench, script)
    captured = bench.capture()
    deepest = "/".join(["d" * 100] * 60)
    assert len(deepest) > 4096
    assert captured.changes.get(f"{deepest}/bottom") == Change(f"{deepest}/bottom", None, file("deep\n"))
    assert len(captured.changes) == 61


def test_a_deep_tree_that_is_deleted_is_captured_whole(stand: Stand):
    folder = stand.workspace / "deep"
    names = []
    for number in range(40):
        folder = folder / f"level{number}"
        names.append(folder)
    folder.mkdir(parents=True)
    (folder / "bottom").write_text("x")
    before = nodes(snapshot(stand.workspace))
    bench = stand.bench()
    shell(bench, "rm -r deep")
    gone = {path: node for path, node in before.items() if path.startswith("deep")}
    assert bench.capture().changes == ChangeSet.of(Change(path, node, None) for path, node in gone.items())


def test_empty_folders_come_and_go_as_changes(stand: Stand):
    (stand.workspace / "hollow").mkdir(mode=0o750)
    bench = stand.bench()
    shell(bench, "rmdir hollow; mkdir fresh; chmod 711 fresh")
    assert bench.capture().changes == ChangeSet.of(
        [Change("fresh", None, Node.directory(0o711)), Change("hollow", Node.directory(0o750), None)]
    )


def test_the_second_name_of_a_file_is_a_change_of_its_own(stand: Stand):
    os.link(stand.workspace / "README.md", stand.workspace / "second")
    bench = stand.bench()
    text = (stand.workspace / "README.md").read_text()
    shell(bench, "echo more >> second")
    changes = bench.capture().changes
    assert changes.get("second") == Change("second", file(text), file(text + "more\n"))
    assert (stand.workspace / "README.md").read_text() == text


def test_what_was_captured_once_is_captured_again_with_what_came_since(stand: Stand):
    bench = stand.bench()
    shell(bench, "echo 1 > one")
    first = bench.capture()
    assert bench.capture() == first
    shell(bench, "echo 2 > two; rm one")
    assert bench.capture().changes == ChangeSet((Change("two", None, file("2\n")),))


@pytest.mark.spec("F3")
def test_special_files_are_held_back_and_nothing_waits_for_them(stand: Stand):
    bench = stand.bench()
    shell(bench, "mkfifo pipe; python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('sock')\"; echo x > x")
    assert bench.capture() == Capture(
        changes=ChangeSet((Change("x", None, file("x\n")),)),
        held=(HeldBack("pipe", HeldReason.SPECIAL), HeldBack("sock", HeldReason.SPECIAL)),
    )


def test_a_special_file_of_the_workspace_is_not_shown_and_stays_whatever_takes_its_place(overlay_stand: Stand):
    os.mkfifo(overlay_stand.workspace / "pipe")
    bench = overlay_stand.bench()
    shell(bench, "test ! -e pipe; echo x > pipe; rm -r src; mkfifo src")
    captured = bench.capture()
    assert captured.held[0] == HeldBack("pipe", HeldReason.SPECIAL)
    assert HeldBack("src", HeldReason.SPECIAL) in captured.held


@pytest.mark.attack("A18")
@pytest.mark.spec("A15")
def test_nothing_of_git_is_ever_part_of_a_change_set(stand: Stand):
    subprocess.run(["git", "init", "-q", stand.workspace], check=True)
    inode = (stand.workspace / ".git").stat().st_ino
    bench = stand.bench()
    shell(
        bench,
        "mv .git .git_old && mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit;"
        "mkdir -p vendor/lib/.git vendor/.GIT && echo x > vendor/lib/.git/config && echo x > vendor/.GIT/config;"
        "echo y > vendor/y",
    )
    captured = bench.capture()
    held = {held.path for held in captured.held if held.reason is HeldReason.GIT}
    assert held == {".git", "vendor/lib/.git", "vendor/.GIT"}
    moved = [one for one in captured.held if one.reason is not HeldReason.GIT]
    assert all(one.reason is HeldReason.PROTECTED and one.path.startswith(".git_old") for one in moved)
    assert not [path for path in captured.changes.paths if path.startswith(".git_old")]
    assert not [path for path in captured.changes.paths if ".git" in path.casefold().split("/")]
    assert "vendor/y" in captured.changes.paths
    assert (stand.workspace / ".git").stat().st_ino == inode
    assert not (stand.workspace / ".git/hooks/pre-commit").exists()


@pytest.mark.spec("A15", "B13")
def test_the_content_of_a_secret_reaches_no_blob(stand: Stand):
    (stand.workspace / ".env").write_text("KEY=before-canary\n")
    bench = stand.bench()
    script = (
        "echo KEY=after-canary > .env; mkdir -p keys; echo canary > keys/server.pem; mv .env .env.local; echo x > x"
    )
    shell(bench, script, secrets="shown")
    captured = bench.capture()
    assert captured.held == (
        HeldBack(".env", HeldReason.SECRET),
        HeldBack(".env.local", HeldReason.SECRET),
        HeldBack("keys/server.pem", HeldReason.SECRET),
    )
    assert captured.changes.paths == {"x"}
    for text in ("KEY=before-canary\n", "KEY=after-canary\n", "canary\n"):
        with pytest.raises(MissingBlob):
            stand.blobs.get(blob_digest(text.encode()))


def test_a_secret_that_was_only_touched_is_not_mentioned(stand: Stand):
    (stand.workspace / ".env").write_text("KEY=1\n")
    bench = stand.bench()
    shell(bench, "touch .env", secrets="shown")
    assert bench.capture() == Capture()


@pytest.mark.attack("A12", "A13")
@pytest.mark.spec("A15")
def test_files_that_configure_or_execute_wait_for_the_users_own_yes(stand: Stand):
    (stand.workspace / "AGENTS.md").write_text("be kind\n")
    bench = stand.bench()
    shell(
        bench, "mkdir .vscode; echo {} > .vscode/tasks.json; echo evil >> AGENTS.md; echo [x] > pawl.toml; echo x > x"
    )
    captured = bench.capture()
    assert captured.changes.paths == {"x"}
    assert captured.held == (
        HeldBack(".vscode", HeldReason.PROTECTED, Change(".vscode", None, Node.directory())),
        HeldBack(".vscode/tasks.json", HeldReason.PROTECTED, Change(".vscode/tasks.json", None, file("{}\n"))),
        HeldBack("AGENTS.md", HeldReason.PROTECTED, Change("AGENTS.md", file("be kind\n"), file("be kind\nevil\n"))),
        HeldBack("pawl.toml", HeldReason.PROTECTED, Change("pawl.toml", None, file("[x]\n"))),
    )
    assert not (stand.workspace / ".vscode").exists()
    assert (stand.workspace / "AGENTS.md").read_text() == "be kind\n"


def test_a_new_link_is_held_back_only_when_it_leads_out_of_the_workspace(stand: Stand):
    bench = stand.bench()
    shell(
        bench,
        f"ln -s /etc/passwd out1; ln -s ../x out2; ln -s src/../../x out3; ln -s . root; ln -s root/../x out4;"
        f"ln -s src/main.py in1; ln -s {stand.workspace}/README.md in2; ln -s src/../README.md in3; ln -s missing in4;"
        f"ln -s loop loop; ln -s {stand.workspace}-evil/x out5;"
        "mkdir d; ln -s ../README.md d/in5; ln -s ../../x d/out6",
    )
    captured = bench.capture()
    assert [(held.path, held.reason) for held in captured.held] == [
        (path, HeldReason.LEAVES_TREE) for path in ("d/out6", "out1", "out2", "out3", "out4", "out5")
    ]
    assert captured.changes.paths == {"d", "d/in5", "in1", "in2", "in3", "in4", "loop", "root"}


def test_a_file_over_the_limit_is_held_back_on_both_sides(stand: Stand):
    (stand.workspace / "large").write_bytes(b"x" * 3000)
    bench = stand.bench(largest_file=2000)
    shell(bench, "rm large; truncate -s 20G sparse; head -c 2000 /dev/zero > fits; chmod 600 logo.bin")
    captured = bench.capture()
    assert captured.held == (HeldBack("large", HeldReason.TOO_LARGE), HeldBack("sparse", HeldReason.TOO_LARGE))
    assert captured.changes.paths == {"fits", "logo.bin"}


def test_a_folder_that_still_holds_something_kept_back_is_not_removed(stand: Stand):
    lay(stand.workspace, {"app/.env": b"KEY=1", "app/main.py": b"x", "app/sub/x": b"x"})
    bench = stand.bench()
    shell(bench, "rm -r app", secrets="shown")
    captured = bench.capture()
    assert captured.changes.paths == {"app/main.py", "app/sub", "app/sub/x"}
    assert captured.held == (
        HeldBack("app", HeldReason.IN_THE_WAY, Change("app", Node.directory(), None)),
        HeldBack("app/.env", HeldReason.SECRET),
    )


def test_a_folder_that_became_a_file_waits_for_what_is_kept_in_it(stand: Stand):
    lay(stand.workspace, {"app/.env": b"KEY=1"})
    bench = stand.bench()
    shell(bench, "rm -r app; echo x > app", secrets="shown")
    assert bench.capture().held == (
        HeldBack("app", HeldReason.IN_THE_WAY, Change("app", Node.directory(), file("x\n"))),
        HeldBack("app/.env", HeldReason.SECRET),
    )


def test_what_lies_in_a_folder_that_is_held_back_is_held_back_with_it(stand: Stand):
    (stand.workspace / "AGENTS.md").write_text("x")
    bench = stand.bench()
    shell(bench, "rm AGENTS.md; mkdir AGENTS.md; echo y > AGENTS.md/y")
    captured = bench.capture()
    assert captured.changes == EMPTY
    assert [(held.path, held.reason) for held in captured.held] == [
        ("AGENTS.md", HeldReason.PROTECTED),
        ("AGENTS.md/y", HeldReason.IN_THE_WAY),
    ]


def test_what_lies_deeper_in_a_replaced_folder_is_gone_too(stand: Stand, tmp_path: Path):
    lay(stand.workspace, {"a/b/c/d": b"d", "a/b/e": b"e", "a/f": b"f"})
    for number, script in enumerate(("rm -r a; mkdir -p a/b/c; echo x > a/b/c/x", "rm -r a/b; mkdir -p a/b/c; rm a/f")):
        bench = stand.bench()
        wanted = rehearsed(stand.workspace, script, tmp_path / f"rehearsal{number}")
        shell(bench, script)
        assert bench.capture() == Capture(changes=wanted)


def test_ignored_files_are_captured_when_that_is_asked_for(stand: Stand):
    bench = stand.bench(include_ignored=True)
    shell(bench, "mkdir __pycache__; echo x > __pycache__/x.pyc")
    assert bench.capture() == Capture(
        changes=ChangeSet.of(
            [Change("__pycache__", None, Node.directory()), Change("__pycache__/x.pyc", None, file("x\n"))]
        )
    )


def test_pawls_own_staging_names_are_out_of_reach(stand: Stand):
    bench = stand.bench()
    shell(bench, "mkdir .pawl-tmp-1; echo x > .pawl-tmp-1/x; echo y > y")
    captured = bench.capture()
    assert captured.held == (HeldBack(".pawl-tmp-1", HeldReason.FORBIDDEN),)
    assert captured.changes.paths == {"y"}


def test_a_workspace_whose_path_is_full_of_signs_can_have_a_bench(stand: Stand, tmp_path: Path):
    odd = tmp_path / "a, b:c=d \\e 'ü' \"$x\""
    shutil.copytree(stand.workspace, odd, symlinks=True)
    stand.workspace = odd
    bench = stand.bench()
    assert shell(bench, "pwd").stdout.text == f"{odd}\n"
    shell(bench, "echo x > x; rm README.md")
    assert bench.capture().changes.paths == {"x", "README.md"}
    assert (odd / "README.md").exists()


def test_benches_stand_side_by_side_without_seeing_each_other(stand: Stand):
    benches = [stand.bench() for _ in range(3)]
    for number, bench in enumerate(benches):
        shell(bench, f"echo {number} > README.md; echo {number} > own{number}")
    for number, bench in enumerate(benches):
        assert shell(bench, "cat README.md; ls").stdout.text.startswith(f"{number}\n")
        assert bench.capture().changes.paths == {"README.md", f"own{number}"}
    assert len({bench.id for bench in benches}) == 3


def test_the_whole_of_a_copied_up_tree_is_compared_with_a_full_look(stand: Stand, tmp_path: Path):
    script = (
        "cp -r src src2; rm -rf src; mv src2 src; echo x > src/x;"
        "mkdir -p q/w/e; mv README.md q/w/e; mv latest q; rm -rf q/w/e/r"
    )
    wanted = rehearsed(stand.workspace, script, tmp_path / "rehearsal")
    bench = stand.bench()
    shell(bench, script)
    assert bench.capture().changes == wanted


@pytest.mark.attack("A37")
@pytest.mark.spec("F4")
def test_a_program_that_would_run_with_its_owners_rights_is_held_back(stand: Stand):
    bench = stand.bench()
    shell(bench, "cp run.sh tool; chmod 4755 tool; chmod 0755 README.md")
    captured = bench.capture()
    assert [(held.path, held.reason) for held in captured.held] == [("tool", HeldReason.BITS)]
    assert captured.changes.paths == {"README.md"}
