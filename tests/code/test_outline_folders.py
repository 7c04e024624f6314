"""The outline of files and folders: what is shown, what is left out when it is too much, and what is never read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from folder import GUARDRAILS, FolderFiles

from pawl.code.code_model import FileOutline, FolderSize, Outline
from pawl.code.outline import Outliner, SourceOutliner
from pawl.code.parsers import Parsers
from pawl.core.errors import BinaryFile, NoMatches, NotFound, ParseFailed, PathRefused, SecretRefused, TimedOut


class ReadFiles(FolderFiles):
    """Remembers what was read."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.seen: list[str] = []

    def read(self, path: str) -> bytes:
        self.seen.append(path)
        return super().read(path)


@pytest.fixture(scope="module")
def parsers() -> Iterator[Parsers]:
    with Parsers() as parsers:
        yield parsers


@pytest.fixture
def outliner(parsers: Parsers) -> Outliner:
    return SourceOutliner(GUARDRAILS, parsers=parsers)


@pytest.fixture
def files(workspace: Path) -> ReadFiles:
    return ReadFiles(workspace)


def shown(outline: Outline) -> dict[str, list[str]]:
    return {file.path: [one.qualified for one in file.definitions] for file in outline.files}


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_a_file_shows_all_that_stands_in_no_function(outliner: Outliner, files: ReadFiles, workspace: Path):
    write(
        workspace,
        "a.py",
        "X = 1\nclass A:\n    y = 2\n    def m(self):\n        def inner(): pass\n        class In: pass\n",
    )
    outline = outliner.outline(files, "./a.py")
    assert shown(outline) == {"a.py": ["X", "A", "A.y", "A.m"]}
    assert (outline.path, outline.files[0].language, outline.files[0].lines) == ("a.py", "python", 6)


@pytest.mark.parametrize("path", ["", ".", "./"])
def test_a_folder_shows_the_top_of_every_source_file(outliner: Outliner, files: ReadFiles, workspace: Path, path: str):
    write(workspace, "lib/deep.rb", "module Outer\n  class Inner\n    def m; end\n  end\nend\n")
    write(workspace, "tool", "#!/usr/bin/env python3\ndef main(): pass\n")
    write(workspace, "src/more.ts", "export class Box { open() {} }\n")
    outline = outliner.outline(files, path)
    assert shown(outline) == {
        "lib/deep.rb": ["Outer", "Outer.Inner"],
        "src/greeter.py": ["greet"],
        "src/more.ts": ["Box"],
        "tool": ["main"],
    }
    assert outline.path == "" and outline.left_out == outline.skipped == 0
    assert shown(outliner.outline(files, "src/")) == {"src/greeter.py": ["greet"], "src/more.ts": ["Box"]}


def test_files_that_define_nothing_are_named_only_when_there_are_no_others(
    outliner: Outliner, files: ReadFiles, workspace: Path
):
    write(workspace, "scripts/run.py", "print(1)\n")
    assert shown(outliner.outline(files, "scripts")) == {"scripts/run.py": []}


def test_the_same_folder_gives_the_same_outline(outliner: Outliner, files: ReadFiles):
    assert outliner.outline(files, "") == outliner.outline(files, "")


def test_when_there_is_no_room_fields_go_first_then_the_deepest_then_the_last(
    files: ReadFiles, workspace: Path, parsers: Parsers
):
    write(workspace, "a.py", "X = 1\nclass A:\n    f = 1\n    def m(self): pass\nclass B:\n    def n(self): pass\n")

    def within(lines: int) -> FileOutline:
        (file,) = SourceOutliner(GUARDRAILS, lines=lines, parsers=parsers).outline(files, "a.py").files
        return file

    def names(lines: int) -> list[str]:
        return [one.qualified for one in within(lines).definitions]

    assert names(6) == ["X", "A", "A.f", "A.m", "B", "B.n"]
    assert names(5) == names(4) == ["A", "A.m", "B", "B.n"]
    assert names(3) == names(2) == ["A", "B"]
    assert names(1) == ["A"] and within(1).left_out == 5


def test_in_a_folder_every_file_may_show_equally_many(files: ReadFiles, workspace: Path, parsers: Parsers):
    write(workspace, "p/big.py", "".join(f"def f{number}(): pass\n" for number in range(50)))
    write(workspace, "p/small.py", "def one(): pass\ndef two(): pass\n")
    outline = SourceOutliner(GUARDRAILS, lines=10, parsers=parsers).outline(files, "p")
    assert shown(outline) == {"p/big.py": [f"f{number}" for number in range(6)], "p/small.py": ["one", "two"]}
    assert [file.left_out for file in outline.files] == [44, 0]


def test_a_folder_with_too_many_files_is_shown_by_its_folders_and_only_its_own_files_are_read(
    files: ReadFiles, workspace: Path, parsers: Parsers
):
    for number in range(8):
        write(workspace, f"p/one/{number}.py", "def f(): pass\n")
        write(workspace, f"p/two/deep/{number}.py", "def f(): pass\n")
    write(workspace, "p/own.py", "def own(): pass\n")
    outline = SourceOutliner(GUARDRAILS, lines=20, parsers=parsers).outline(files, "p")
    assert outline.folders == (FolderSize(path="p/one", files=8), FolderSize(path="p/two/deep", files=8))
    assert shown(outline) == {"p/own.py": ["own"]}
    assert files.seen == ["p/own.py"]


def test_folders_are_shown_as_deep_as_there_is_room(files: ReadFiles, workspace: Path, parsers: Parsers):
    for number in range(30):
        write(workspace, f"top/p{number % 3}/q{number}/f.py", "def f(): pass\n")
    outliner = SourceOutliner(GUARDRAILS, lines=20, parsers=parsers)
    assert outliner.outline(files, "top").folders == tuple(FolderSize(path=f"top/p{n}", files=10) for n in range(3))
    assert outliner.outline(files, "").folders == (
        FolderSize(path="src", files=2),
        *(FolderSize(path=f"top/p{n}", files=10) for n in range(3)),
    )


def test_a_file_in_an_unknown_language_is_refused_with_what_to_do(outliner: Outliner, files: ReadFiles):
    with pytest.raises(ParseFailed, match=r"'README\.md'") as caught:
        outliner.outline(files, "README.md")
    assert "file_read" in caught.value.advice


def test_what_is_not_there_and_what_has_no_source_have_their_own_errors(
    outliner: Outliner, files: ReadFiles, workspace: Path
):
    with pytest.raises(NotFound):
        outliner.outline(files, "absent.py")
    write(workspace, "notes/a.txt", "x")
    with pytest.raises(NoMatches):
        outliner.outline(files, "notes")


def test_secrets_and_what_is_gits_are_never_read(outliner: Outliner, files: ReadFiles, workspace: Path):
    write(workspace, ".env", "#!/usr/bin/env python3\nTOKEN = 1\n")
    write(workspace, ".git/hook.py", "def f(): pass\n")
    with pytest.raises(SecretRefused):
        outliner.outline(files, ".env")
    with pytest.raises(PathRefused):
        outliner.outline(files, ".git/hook.py")
    outliner.outline(files, "")
    assert not {".env", ".git/hook.py"} & set(files.seen)


def test_binary_and_large_files_are_left_out_and_counted(outliner: Outliner, files: ReadFiles, workspace: Path):
    (workspace / "binary.py").write_bytes(b"def f(): pass\n\0\1\2")
    write(workspace, "large.py", "def f(): pass\n" * 100_000)
    outline = outliner.outline(files, "")
    assert (shown(outline), outline.skipped) == ({"src/greeter.py": ["greet"]}, 2)
    with pytest.raises(BinaryFile):
        outliner.outline(files, "binary.py")


def test_text_in_another_encoding_is_read(outliner: Outliner, files: ReadFiles, workspace: Path):
    (workspace / "wide.py").write_bytes("class Größe:\r\n    pass\r\n".encode("utf-16"))
    (workspace / "old.py").write_bytes("def grösse(): pass\rdef zwei(): pass\r".encode("latin-1"))
    assert shown(outliner.outline(files, "wide.py")) == {"wide.py": ["Größe"]}
    (old,) = outliner.outline(files, "old.py").files
    assert [(one.name, one.line) for one in old.definitions] == [("grösse", 1), ("zwei", 2)]


def test_a_file_that_kills_its_parser_is_shown_as_read_in_part(files: ReadFiles, workspace: Path, outliner: Outliner):
    write(workspace, "bad.rb", "! <<Alambda " * 2_000)
    outline = outliner.outline(files, "")
    assert [(file.path, file.complete) for file in outline.files] == [("bad.rb", False), ("src/greeter.py", True)]


def test_when_time_is_up_the_rest_is_left_out_and_counted(files: ReadFiles, parsers: Parsers, workspace: Path):
    late = SourceOutliner(GUARDRAILS, seconds=-1.0, parsers=parsers)
    for number in range(150):
        write(workspace, f"many/{number}.py", "def f(): pass\n")
    write(workspace, "own.py", "def f(): pass\n")
    outline = late.outline(files, "")
    assert outline.folders == (FolderSize(path="many", files=150), FolderSize(path="src", files=2))
    assert (outline.files, outline.left_out, files.seen) == ((), 1, [])
    with pytest.raises(TimedOut):
        late.outline(files, "src")
