"""A change of several files: justified, linked by imports, applied in order, taken back as one."""

from __future__ import annotations

from pathlib import Path

import pytest
from folder import GUARDRAILS, BrokenDisk, FolderFiles, FullDisk
from world import lay, snapshot

from pawl.code.code_model import EditType, FileOperation, Modification
from pawl.code.editor import BenchEditor
from pawl.code.import_map import ImportMap
from pawl.core.errors import NothingToDo, ProtectedRefused, RestoreFailed, SyntaxBroken, TextNotFound

pytestmark = pytest.mark.spec("A7")

WHY = "the function is renamed, so its callers are too"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return lay(
        tmp_path / "project",
        {
            "shop/__init__.py": b"",
            "shop/cart.py": b"from shop.price import total\n\n\ndef pay():\n    return total()\n",
            "shop/price.py": b"def total():\n    return 1\n",
            "shop/other.py": b"x = 1\n",
            "notes.txt": b"total\n",
        },
    )


def replaced(path: str, target: str, content: str) -> Modification:
    return Modification(
        path=path, action=FileOperation.EDIT, edit_type=EditType.REPLACE, target=target, content=content
    )


RENAME = [
    Modification(
        path="shop/cart.py",
        action=FileOperation.EDIT,
        edit_type=EditType.REPLACE,
        target="import total\n\n\ndef pay():\n    return total()",
        content="import price\n\n\ndef pay():\n    return price()",
    ),
    replaced("shop/price.py", "def total", "def price"),
]


class Recorder(FolderFiles):
    """Remembers in which order files were written."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.order: list[str] = []

    def write(self, path: str, data: bytes) -> None:
        self.order.append(path)
        super().write(path, data)

    def delete(self, path: str) -> None:
        self.order.append(f"delete {path}")
        super().delete(path)


def mapped(root: Path) -> ImportMap:
    return ImportMap.of({path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*.py")})


def chained(files: FolderFiles, steps: list[Modification], why: str = WHY):
    return BenchEditor(files, GUARDRAILS).chain(steps, justification=why, dependencies=mapped(files.root))


def test_linked_files_are_changed_one_at_a_time_with_imported_files_first(project: Path):
    files = Recorder(project)
    done = chained(files, RENAME)
    assert files.order == ["shop/price.py", "shop/cart.py"]
    assert [edited.path for edited in done] == files.order
    assert (project / "shop/cart.py").read_text().count("price()") == 1


def test_a_source_that_nothing_links_is_changed_and_asked_about(project: Path):
    create = Modification(path="shop/tax.py", action=FileOperation.CREATE, content="RATE = 1\n")
    steps = [*RENAME, replaced("shop/other.py", "x", "y"), replaced("notes.txt", "total", "price"), create]
    done = chained(FolderFiles(project), steps, f"{WHY}; tax.py holds the rate; another.py does not count")
    assert {edited.path for edited in done if any("say why" in note for note in edited.notes)} == {"shop/other.py"}
    assert (project / "notes.txt").read_text() == "price\n"


def test_deletions_come_last(project: Path):
    files = Recorder(project)
    delete = Modification(path="shop/price.py", action=FileOperation.DELETE)
    inline = Modification(
        path="shop/cart.py",
        action=FileOperation.EDIT,
        edit_type=EditType.REPLACE,
        target="from shop.price import total\n\n\ndef pay():\n    return total()",
        content="def pay():\n    return 1",
    )
    chained(files, [delete, inline], "price.py is inlined")
    assert files.order == ["shop/cart.py", "delete shop/price.py"]


def test_a_chain_whose_last_step_fails_leaves_every_file_as_it_was(project: Path):
    create = Modification(path="shop/tax.py", action=FileOperation.CREATE, content="RATE = 1\n")
    delete = Modification(path="shop/other.py", action=FileOperation.DELETE)
    steps = [*RENAME, create, delete, replaced("notes.txt", "not there", "x")]
    before = snapshot(project)
    with pytest.raises(TextNotFound, match=r"notes\.txt") as caught:
        chained(FolderFiles(project), steps, f"{WHY}; tax.py, notes.txt and other.py belong to it")
    assert "every file of the chain is as it was" in caught.value.advice
    assert snapshot(project) == before


def test_after_a_failed_chain_the_same_editor_can_edit_on(project: Path):
    editor = BenchEditor(FolderFiles(project), GUARDRAILS)
    editor.read("shop/price.py")
    with pytest.raises(TextNotFound):
        editor.chain(
            [RENAME[1], replaced("shop/cart.py", "nowhere at all", "x")],
            justification=WHY,
            dependencies=mapped(project),
        )
    editor.patch("shop/price.py", "return 1", "return 2")


def test_a_disk_that_fills_up_in_the_middle_takes_the_whole_chain_back(project: Path):
    before = snapshot(project)
    with pytest.raises(OSError, match="No space left"):
        chained(FullDisk(project, room=1), RENAME)
    assert snapshot(project) == before


def test_files_that_cannot_be_taken_back_are_named(project: Path):
    with pytest.raises(RestoreFailed, match=r"'shop/cart\.py', 'shop/price\.py'"):
        chained(BrokenDisk(project, room=1), RENAME)


def test_a_guarded_file_anywhere_in_the_chain_stops_it_before_the_first_write(project: Path):
    files = Recorder(project)
    with pytest.raises(ProtectedRefused):
        chained(
            files,
            [*RENAME, Modification(path="AGENTS.md", action=FileOperation.CREATE, content="x")],
            f"{WHY} AGENTS.md",
        )
    assert files.order == []


def test_an_empty_chain_is_nothing_to_do(project: Path):
    with pytest.raises(NothingToDo):
        chained(FolderFiles(project), [])


def test_a_file_is_judged_as_all_its_steps_leave_it_and_not_in_between(project: Path):
    steps = [
        replaced("shop/other.py", "x = 1", "x = ("),
        replaced("shop/other.py", "x = (", "x = (1,\n     2)"),
    ]
    assert [one.notes for one in chained(FolderFiles(project), steps)] == [(), ()]
    assert (project / "shop/other.py").read_text() == "x = (1,\n     2)\n"
    before = snapshot(project)
    broken = [replaced("shop/other.py", "2)", "2"), replaced("shop/other.py", "(1", "((1")]
    with pytest.raises(SyntaxBroken, match=r"shop/other\.py") as caught:
        chained(FolderFiles(project), broken)
    assert "every file of the chain is as it was" in caught.value.advice
    assert snapshot(project) == before


def test_that_a_kind_of_file_is_not_checked_is_said_once(project: Path):
    editor = BenchEditor(FolderFiles(project), GUARDRAILS)
    first, second = editor.patch("notes.txt", "total", "sum"), editor.patch("notes.txt", "sum", "total")
    assert first.notes == ("the syntax of '.txt' files is not checked",) and second.notes == ()
