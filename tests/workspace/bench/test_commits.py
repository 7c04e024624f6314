"""Commits of a change by itself, in the kinds of repositories there are, held against what git reads of them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from git_traps import COMMITTED, REFUSED, Trapped
from workspace.bench.stand import Stand
from workspace.bench.unshared import UnsharedSandbox

from pawl.core.change import Change, ChangeSet, Node
from pawl.core.errors import GitFailed, SandboxUnavailable
from pawl.settings.files import Tree
from pawl.workspace import commits as commits_module
from pawl.workspace.commits import NOT_SIGNED, Committer
from pawl.workspace.git import GitLog

pytestmark = pytest.mark.spec("E13")


class Home:
    """A repository, and changes of its files as a promotion makes them."""

    def __init__(self, stand: Stand, home: Path) -> None:
        self.stand = stand
        self.folder = stand.workspace
        self.environment = {"HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}

    def git(self, *words: str, given: bytes = b"") -> str:
        done = subprocess.run(["git", *words], cwd=self.folder, capture_output=True, input=given, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    def write(self, files: Mapping[str, bytes]) -> None:
        for name, content in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_bytes(content)

    def promote(self, files: Mapping[str, bytes | None]) -> ChangeSet:
        with Tree(self.folder) as tree:
            before = {name: tree.node(name, self.stand.blobs) for name in files}
            for name, content in files.items():
                if content is None:
                    (self.folder / name).unlink()
            self.write({name: content for name, content in files.items() if content is not None})
            after = {name: tree.node(name, self.stand.blobs) for name in files}
        return ChangeSet.of(Change(name, before[name], after[name]) for name in files)

    def commit(
        self, changes: ChangeSet, message: str = "change\n", since: str | None = None
    ) -> tuple[str, tuple[str, ...]]:
        with Tree(self.folder) as tree:
            made = Committer(
                workspace=tree,
                environment=self.environment,
                blobs=self.stand.blobs,
                runner=self.stand.bench,
                since=since,
            )
            return made.commit(changes, message)

    def refused(self, changes: ChangeSet) -> str:
        before = [self.git("rev-parse", "--verify", "-q", "HEAD")] if self.has_head() else []
        with pytest.raises(GitFailed) as caught:
            self.commit(changes)
        assert caught.value.advice
        assert ([self.git("rev-parse", "HEAD")] if self.has_head() else []) == before
        assert not list(self.folder.rglob("*.lock"))
        return caught.value.message

    def has_head(self) -> bool:
        words = ["git", "rev-parse", "--verify", "-q", "HEAD"]
        return subprocess.run(words, cwd=self.folder, capture_output=True, check=False).returncode == 0

    def sound(self) -> None:
        """What git thinks of it."""
        assert self.git("fsck", "--strict", "--no-dangling") == ""
        assert self.git("status", "--porcelain") == ""


@pytest.fixture
def home(overlay_stand: Stand, tmp_path: Path) -> Home:
    folder = tmp_path / "home-of-user"
    folder.mkdir()
    (folder / ".gitconfig").write_text("[user]\n\tname = Kim\n\temail = kim@example.org\n")
    shutil.rmtree(overlay_stand.workspace)
    overlay_stand.workspace.mkdir()
    return Home(overlay_stand, folder)


FIRST = {"a.txt": b"one\n", "sub/b.txt": b"one\n", "sub/deep/c.txt": b"one\n", "sub.txt": b"1", "sub-x/y": b"1"}


def begin(home: Home, *words: str) -> None:
    home.git("init", "-q", "-b", "main", *words)
    home.write(FIRST)
    home.git("add", "-A")
    home.git("commit", "-qm", "first")


def plain(home: Home) -> None:
    begin(home)


def packed(home: Home) -> None:
    begin(home)
    home.git("gc", "-q")


def sha256(home: Home) -> None:
    begin(home, "--object-format=sha256")


def detached(home: Home) -> None:
    begin(home)
    home.git("checkout", "-q", "--detach")


def split_index(home: Home) -> None:
    begin(home)
    home.git("update-index", "--split-index")


def sparse(home: Home) -> None:
    home.write({"away/z.txt": b"1"})
    begin(home)
    home.git("sparse-checkout", "set", "--sparse-index", "sub", "sub-x")


def version_four(home: Home) -> None:
    begin(home)
    home.git("update-index", "--index-version", "4")


def long_branch(home: Home) -> None:
    begin(home)
    home.git("checkout", "-q", "-b", "kim/some.thing-ünd/more")
    home.git("pack-refs", "--all")


def worktree(home: Home) -> None:
    begin(home)
    away = home.folder.parent / "main-copy"
    home.folder.rename(away)
    subprocess.run(["git", "worktree", "add", "-q", "-b", "other", str(home.folder)], cwd=away, check=True)


def shallow(home: Home) -> None:
    begin(home)
    home.git("commit", "-q", "--allow-empty", "-m", "second")
    away = home.folder.parent / "origin"
    home.folder.rename(away)
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{away}", str(home.folder)], check=True)


KINDS = [plain, packed, sha256, detached, split_index, sparse, version_four, long_branch, worktree, shallow]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_change_of_many_kinds_is_committed_and_the_index_follows(home: Home, kind: Callable[[Home], None]):
    kind(home)
    before, branch = home.git("rev-parse", "HEAD").strip(), home.git("rev-parse", "--abbrev-ref", "HEAD")
    changes = home.promote(
        {"a.txt": b"two\n", "sub/b.txt": None, "sub/deep/c.txt": None, "sub/new/d": b"1\r\n", "sub-x/y": b"2"}
    )
    name, notes = home.commit(changes, "subject\n\nbody é\n")
    assert notes == ()
    assert home.git("rev-parse", "HEAD", "HEAD~1").split() == [name, before]
    assert home.git("rev-parse", "--abbrev-ref", "HEAD") == branch
    assert home.git("log", "-1", "--format=%an <%ae> %cn|%B").strip() == "Kim <kim@example.org> Kim|subject\n\nbody é"
    rows = home.git("diff", "--name-status", "HEAD~1", "HEAD").split()
    assert rows == ["M", "a.txt", "M", "sub-x/y", "D", "sub/b.txt", "D", "sub/deep/c.txt", "A", "sub/new/d"]
    assert "commit by pawl" in home.git("reflog", "-1")
    home.sound()
    with Tree(home.folder) as tree:
        log = GitLog(tree, home.stand.bench)
        assert log.head() == name
        assert [commit.name for commit in log.commits(5)] == [*home.git("rev-list", "HEAD").split()]


def test_the_first_commit_of_a_branch_is_made(home: Home):
    home.git("init", "-q", "-b", "main")
    home.write({"mine.txt": b"1"})
    home.git("add", "mine.txt")
    name, _ = home.commit(home.promote({"a/b.txt": b"one\n"}))
    assert home.git("log", "--format=%H %P").strip() == name
    assert home.git("ls-tree", "-r", "--name-only", "HEAD") == "a/b.txt\n"
    assert home.git("status", "--porcelain") == "A  mine.txt\n"


def test_what_is_staged_of_the_same_file_stays_staged(home: Home):
    begin(home)
    home.write({"a.txt": b"staged\n"})
    home.git("add", "a.txt")
    home.write({"a.txt": b"one\n"})
    home.commit(home.promote({"a.txt": b"two\n"}))
    assert home.git("show", ":a.txt") == "staged\n" and home.git("show", "HEAD:a.txt") == "two\n"


def test_a_second_call_makes_no_second_commit(home: Home):
    begin(home)
    changes = home.promote({"a.txt": b"two\n"})
    base = home.git("rev-parse", "HEAD").strip()
    made = home.commit(changes)
    assert home.commit(changes, since=base) == made
    assert home.commit(changes, since=made[0]) == ("", ("not committed: nothing differs from HEAD",))
    assert home.git("rev-list", "--count", "HEAD") == "2\n"


def test_a_file_becomes_a_folder_and_a_folder_a_file(home: Home):
    begin(home)
    blobs = home.stand.blobs
    (home.folder / "a.txt").unlink()
    home.write({"a.txt/in": b"1"})
    shutil.rmtree(home.folder / "sub")
    home.write({"sub": b"2"})
    file, folder = (lambda data: Node.file(blobs.put(data), 0o644)), Node.directory(0o755)
    changes = ChangeSet.of(
        [
            Change("a.txt", file(b"one\n"), folder),
            Change("a.txt/in", None, file(b"1")),
            Change("sub", folder, file(b"2")),
            Change("sub/b.txt", file(b"one\n"), None),
            Change("sub/deep", folder, None),
            Change("sub/deep/c.txt", file(b"one\n"), None),
        ]
    )
    home.commit(changes)
    assert home.git("ls-tree", "-r", "--name-only", "HEAD").split() == ["a.txt/in", "sub", "sub-x/y", "sub.txt"]
    home.sound()


@pytest.mark.parametrize(
    ("attributes", "autocrlf"),
    [
        ("* text=auto\n", ""),
        ("*.txt text\n", ""),
        ("*.txt eol=crlf\n", ""),
        ("", "true"),
        ("", "input"),
        ("* -text\n", "true"),
    ],
)
def test_line_ends_are_kept_as_git_keeps_them(home: Home, attributes: str, autocrlf: str):
    home.git("init", "-q", "-b", "main")
    if autocrlf:
        home.git("config", "core.autocrlf", autocrlf)
    files = {"a.txt": b"1\r\n2\r\n", "b.txt": b"1\n", "c.txt": b"\0\r\n", "d.txt": b"1\r2\r\n"}
    home.write({**files, ".gitattributes": attributes.encode()})
    home.git("add", "-A")
    home.git("commit", "-qm", "first")
    wanted = {name: content + b"more\r\n" for name, content in files.items()} | {"new.txt": b"x\r\ny\r\n"}
    home.commit(home.promote(wanted))
    made = home.git("rev-parse", "HEAD^{tree}")
    home.git("reset", "-q", "--mixed", "HEAD~1")
    home.git("add", "-A")
    assert home.git("write-tree") == made


def merge(home: Home) -> None:
    (home.folder / ".git/MERGE_HEAD").write_text(home.git("rev-parse", "HEAD"))


def rebase(home: Home) -> None:
    (home.folder / ".git/rebase-merge").mkdir()


def reftable(home: Home) -> None:
    home.git("config", "core.repositoryFormatVersion", "1")
    with open(home.folder / ".git/config", "a") as file:
        file.write("[extensions]\nrefStorage = reftable\n")


def nested(home: Home) -> None:
    subprocess.run(["git", "init", "-q", home.folder / "sub"], check=True)


def submodule(home: Home) -> None:
    shutil.rmtree(home.folder / "sub")
    home.git("rm", "-rq", "--cached", "sub")
    home.git("update-index", "--add", "--cacheinfo", f"160000,{home.git('rev-parse', 'HEAD').strip()},sub")
    home.git("commit", "-qm", "submodule")


def nobody(home: Home) -> None:
    Path(home.environment["HOME"], ".gitconfig").write_text("[user]\nname = Kim\n")


def locked_index(home: Home) -> None:
    (home.folder / ".git/index.lock").write_text("")


def conflicting_edit(home: Home) -> None:
    home.write({"a.txt": b"mine\n"})


def identified(home: Home) -> None:
    home.write({".gitattributes": b"*.txt ident\n"})


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (merge, "a merge is under way"),
        (rebase, "a rebase is under way"),
        (reftable, "reftable"),
        (nested, "'sub' is a repository of its own"),
        (submodule, "'sub' is a submodule"),
        (nobody, "user.email is not set"),
        (conflicting_edit, "'a.txt' had changes before this one"),
        (identified, "by its attribute ident"),
    ],
    ids=lambda one: getattr(one, "__name__", "why"),
)
def test_where_a_commit_would_be_wrong_it_is_refused_with_the_next_step(home: Home, kind, why: str):
    begin(home)
    kind(home)
    if kind is reftable:
        with pytest.raises(GitFailed, match=why):
            home.commit(home.promote({"a.txt": b"two\n"}))
        return
    assert why in home.refused(home.promote({"a.txt": b"mine\ntwo\n", "sub/new.txt": b"1"}))


def test_a_lock_of_another_git_is_respected_and_left(home: Home):
    begin(home)
    changes = home.promote({"a.txt": b"two\n"})
    for name in ("index", "HEAD", "refs/heads/main"):
        lock = home.folder / f".git/{name}.lock"
        lock.write_text("theirs")
        with pytest.raises(GitFailed, match=r"\.lock' exists.*HEAD has not moved"):
            home.commit(changes)
        assert lock.read_text() == "theirs"
        lock.unlink()
        assert not list(home.folder.rglob("*.lock"))
    assert home.commit(changes)[0]
    home.sound()


def test_a_branch_that_moves_meanwhile_is_not_taken_back(home: Home, monkeypatch: pytest.MonkeyPatch):
    begin(home)
    changes = home.promote({"a.txt": b"two\n"})
    moving = commits_module.move_head

    def late(repository, head, commit, log):
        home.git("update-ref", "HEAD", home.git("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "theirs").strip())
        moving(repository, head, commit, log)

    monkeypatch.setattr(commits_module, "move_head", late)
    with pytest.raises(GitFailed, match="HEAD was moved"):
        home.commit(changes)
    assert home.git("log", "-1", "--format=%s") == "theirs\n"


def test_a_failure_after_the_branch_has_moved_is_told_as_a_commit(home: Home, monkeypatch: pytest.MonkeyPatch):
    begin(home)
    moving = commits_module.move_head

    def failing(repository, head, commit, log):
        moving(repository, head, commit, log)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(commits_module, "move_head", failing)
    name, notes = home.commit(home.promote({"a.txt": b"two\n"}))
    assert home.git("rev-parse", "HEAD").strip() == name
    assert "the index is not up to date" in notes[0]


def test_a_log_that_leads_out_is_not_written_and_no_failure_of_the_commit(home: Home, tmp_path: Path):
    begin(home)
    logs = home.stand.workspace / ".git/logs"
    shutil.rmtree(logs)
    logs.symlink_to(tmp_path)
    before = sorted(tmp_path.iterdir())
    name, notes = home.commit(home.promote({"a.txt": b"two\n"}))
    assert (home.git("rev-parse", "HEAD").strip(), notes) == (name, ())
    assert home.git("status", "--porcelain") == ""
    assert sorted(tmp_path.iterdir()) == before


def test_without_a_sandbox_git_is_not_run(home: Home):
    class Unavailable(UnsharedSandbox):
        def run(self, view, execution, *, on_output=None, cancel=None):
            raise SandboxUnavailable("nothing confines a command here")

    begin(home)
    changes = home.promote({"a.txt": b"two\n"})
    home.stand.sandbox = Unavailable()
    assert "git is not run without a sandbox" in home.refused(changes)


def test_a_commit_is_not_signed_and_says_so_where_the_user_signs(home: Home):
    begin(home)
    with open(Path(home.environment["HOME"], ".gitconfig"), "a") as file:
        file.write('[commit] ; always\n\tgpgSign\n[user]\n\tname = "Kim # \\"K\\"" # me\n')
    _, notes = home.commit(home.promote({"a.txt": b"two\n"}))
    assert notes == (NOT_SIGNED,)
    assert "gpgsig" not in home.git("cat-file", "-p", "HEAD")
    assert home.git("log", "-1", "--format=%an") == 'Kim # "K\n'


@pytest.fixture
def trapped(tmp_path: Path) -> Iterator[Trapped]:
    root = tmp_path / "trapped"
    root.mkdir()
    yield Trapped.made(root)


@pytest.mark.attack("A19")
@pytest.mark.parametrize("trap", [*COMMITTED, *REFUSED], ids=lambda trap: trap.__name__)
def test_nothing_runs_even_where_nothing_is_confined(home: Home, trapped: Trapped, trap, monkeypatch):
    """The sandbox that confines nothing shows that git is not even tempted inside."""
    monkeypatch.setattr(home.stand, "sandbox", UnsharedSandbox())
    home.folder = home.stand.workspace = trapped.workspace
    trap(trapped)
    changes = home.promote({"a.txt": b"two\n"})
    if trap in COMMITTED:
        assert home.commit(changes)[0]
    else:
        with pytest.raises(GitFailed):
            home.commit(changes)
    with Tree(home.folder) as tree:
        log = GitLog(tree, home.stand.bench)
        log.commits(5)
        log.head()
    bench = home.stand.bench()
    bench.files.write("kept.log", b"2")
    bench.capture()
    assert trapped.marks == []
    assert os.path.exists(trapped.evil)
