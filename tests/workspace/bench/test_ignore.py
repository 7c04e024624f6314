"""What stays on the bench: ignore files with git's own meaning, and caches that need none."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from workspace.bench.stand import Stand, shell
from world import lay

from pawl.core.change import Change, ChangeSet, Node, blob_digest
from pawl.workspace.capture import Capture, HeldBack, HeldReason
from pawl.workspace.ignore import Ignore, decide, parse

NAMES = ["a", "b", "foo", "foo.log", "build", "x.d", "logs", "a.b", "keep", "[x]", "sp ace", "!bang", "#hash", "ä"]
NAMES += ["new\nline", "tail ", "]", "back\\s", "-"]
WORDS = ["*", "**", "**", "*.log", "f*", "?", "??", "[ab]", "[!a]", "[^a-f]", "a*", "*o*", "**a", "a**b", "\\!bang"]
WORDS += ["\\#hash", "sp\\ ace", "[[]x]", "[a-f]oo", "x\\.d", "[]]", "[!]]", "[", "[a", "[[:alpha:]]", "[[:bad:]]"]
WORDS += [
    "[[:digit:]a]",
    "[a\\-z]",
    "[z-a]",
    "[/]",
    "a[/]b",
    "\\",
    "\\\\",
    "*\\*",
    "[a-]",
    "[-a]",
    "[\\]]",
    "*.*",
    "[!/]*",
]


def folder_reader(root: Path):
    def read(path: str) -> bytes | None:
        file = root / path
        return file.read_bytes() if file.is_file() and not file.is_symlink() else None

    return read


def pattern(chance: random.Random) -> str:
    text = "/".join(chance.choice(NAMES + WORDS) for _ in range(chance.choice([1, 1, 1, 2, 2, 3])))
    text = ("!" if chance.random() < 0.3 else "") + ("/" if chance.random() < 0.25 else "") + text
    text += "/" if chance.random() < 0.3 else ""
    return text + (chance.choice(["  ", "\\ ", " \t", "\r", "//"]) if chance.random() < 0.1 else "")


def random_tree(chance: random.Random, root: Path) -> list[tuple[str, bool]]:
    subprocess.run(["git", "init", "-q", root], check=True)
    found: dict[str, bool] = {}
    for _ in range(40):
        path = "/".join(chance.choice(NAMES) for _ in range(chance.choice([1, 2, 2, 3, 4])))
        folder = chance.random() < 0.3
        try:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).mkdir() if folder else (root / path).touch(exist_ok=False)
        except OSError:
            continue
        found[path] = folder
    return sorted(found.items())


def compare_with_git(seed: int, root: Path) -> int:
    chance = random.Random(seed)
    paths = random_tree(chance, root)
    ignores = ["", *sorted(os.path.dirname(path) for path, _ in chance.sample(paths, 2))]
    for folder in dict.fromkeys(ignores):
        lines = "\n".join(pattern(chance) for _ in range(chance.randint(1, 5)))
        (root / folder / ".gitignore").write_bytes((lines + chance.choice(["\n", ""])).encode())
    (root / ".git/info/exclude").write_text(f"{pattern(chance)}\n{pattern(chance)}\n")
    done = subprocess.run(
        ["git", "check-ignore", "--no-index", "-z", "--stdin"],
        input="\0".join(path for path, _ in paths).encode(),
        capture_output=True,
        cwd=root,
        check=False,
    )
    ignored = set(done.stdout.decode().split("\0"))
    ignore = Ignore(folder_reader(root))
    for path, folder in paths:
        assert (ignore.topmost(path, folder=folder) is not None) == (path in ignored), (seed, path)
    return len(ignored)


@pytest.mark.spec("F8")
def test_random_ignore_files_mean_what_git_says_they_mean(tmp_path: Path):
    assert sum(compare_with_git(seed, tmp_path / str(seed)) for seed in range(60)) > 100


@pytest.mark.slow
@pytest.mark.spec("F8")
def test_many_random_ignore_files_mean_what_git_says_they_mean(tmp_path: Path):
    for seed in range(1000, 2000):
        compare_with_git(seed, tmp_path / "tree")
        shutil.rmtree(tmp_path / "tree")


@pytest.mark.parametrize(
    ("text", "path"),
    [("*a" * 40 + "*b", "a" * 255), ("**/a/" * 40 + "b", "a/" * 2000 + "c"), ("[!b]*" * 60 + "b", "a" * 255)],
)
def test_a_hostile_pattern_does_not_take_forever(text: str, path: str):
    assert decide(parse(text.encode()), path.encode(), folder=False) is None


def test_the_nearest_file_wins_and_the_neutral_names_count_too(tmp_path: Path):
    lay(
        tmp_path,
        {
            ".gitignore": b"*.log\nout/\n",
            ".agentignore": b"secret-plans\n",
            ".aiignore": b"*.csv\n",
            "sub/.gitignore": b"!kept.log\n",
            "out/.gitignore": b"!inner\n",
            "users": b"*.mine\n!a.log\n",
        },
    )
    ignore = Ignore(folder_reader(tmp_path), global_file=tmp_path / "users")
    assert ignore.topmost("a.log", folder=False) == "a.log"
    assert ignore.topmost("sub/kept.log", folder=False) is None
    assert ignore.topmost("sub/other.log", folder=False) == "sub/other.log"
    assert ignore.topmost("out/inner", folder=False) == "out/"
    assert ignore.topmost("out", folder=False) is None
    assert ignore.topmost("secret-plans/x/y", folder=False) == "secret-plans/"
    assert ignore.topmost("sub/data.csv", folder=False) == "sub/data.csv"
    assert ignore.topmost("x.mine", folder=False) == "x.mine"


def test_caches_are_known_without_any_ignore_file_and_packages_are_not(tmp_path: Path):
    ignore = Ignore(lambda path: None)
    for path in ("__pycache__", "src/__pycache__", ".pytest_cache", ".mypy_cache", "node_modules/.cache"):
        assert ignore.topmost(path, folder=True) == f"{path}/"
    assert ignore.topmost("src/old.pyc", folder=False) == "src/old.pyc"
    for path in ("node_modules", ".venv", "build", "dist", "cache"):
        assert ignore.topmost(path, folder=True) is None


def test_a_project_can_take_a_cache_back(tmp_path: Path):
    ignore = Ignore(lambda path: b"!.cache/\n" if path == ".gitignore" else None)
    assert ignore.topmost(".cache", folder=True) is None
    assert ignore.topmost("__pycache__", folder=True) == "__pycache__/"


def test_ignored_changes_stay_on_the_bench_and_only_their_topmost_paths_are_named(stand: Stand):
    lay(stand.workspace, {".gitignore": b"/dist/\n*.log\n", "dist/old": b"x"})
    bench = stand.bench()
    shell(
        bench,
        "mkdir -p src/__pycache__ dist/deep; echo x > src/__pycache__/a.pyc; echo x > dist/deep/x; rm dist/old;"
        "echo x > src/a.log; echo x > kept",
    )
    assert bench.capture() == Capture(
        changes=ChangeSet((Change("kept", None, Node.file(blob_digest(b"x\n"))),)),
        ignored=("dist/", "src/__pycache__/", "src/a.log"),
    )


def test_an_ignore_file_that_the_command_wrote_counts(stand: Stand):
    bench = stand.bench()
    shell(bench, "echo '*.tmp' > .gitignore; echo x > a.tmp; echo x > b")
    captured = bench.capture()
    assert (captured.changes.paths, captured.ignored) == ({".gitignore", "b"}, ("a.tmp",))


def test_a_folder_that_still_holds_caches_is_left_as_git_leaves_it(stand: Stand):
    lay(stand.workspace, {"pkg/__init__.py": b"", "pkg/__pycache__/x.pyc": b"x"})
    bench = stand.bench()
    shell(bench, "rm -r pkg")
    captured = bench.capture()
    assert (captured.changes.paths, captured.ignored, captured.held) == ({"pkg/__init__.py"}, ("pkg/__pycache__/",), ())


@pytest.mark.spec("F3", "F8")
def test_a_file_that_git_tracks_is_never_ignored(stand: Stand):
    subprocess.run(["git", "init", "-q", stand.workspace], check=True)
    lay(stand.workspace, {"dist/tracked": b"1", "dist/other": b"1", "a b.log": b"1", "c.log": b"1"})
    subprocess.run(["git", "-C", stand.workspace, "add", "-A"], check=True)
    subprocess.run(["git", "-C", stand.workspace, "rm", "-q", "--cached", "dist/other", "c.log"], check=True)
    (stand.workspace / ".gitignore").write_text("dist/\n*.log\n")
    bench = stand.bench()
    shell(bench, "for f in dist/tracked dist/other 'a b.log' c.log; do echo 2 > \"$f\"; done; echo x > dist/new")
    captured = bench.capture()
    assert captured.changes.paths == {"dist/tracked", "a b.log"}
    assert captured.ignored == ("c.log", "dist/")


def test_a_secret_is_named_though_it_is_ignored_but_not_inside_an_ignored_folder(stand: Stand):
    (stand.workspace / ".gitignore").write_text(".env\nvenv/\n")
    bench = stand.bench()
    shell(bench, "echo K=1 > .env; mkdir -p venv/certifi; echo x > venv/certifi/cacert.pem", secrets="shown")
    assert bench.capture() == Capture(ignored=("venv/",), held=(HeldBack(".env", HeldReason.SECRET),))
