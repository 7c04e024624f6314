"""The rows of the index: made beside the parsers, the same wherever they are made, whatever happens to the parser."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawl.code.languages import FileKind
from pawl.code.librarian import CodeLibrarian as Index
from pawl.code.parsers import IndexPage, ParserLimits, Parsers, Rows, read
from pawl.code.query import WORD, Tokens, tokens
from pawl.core import redact
from pawl.core.redact import Redactor
from pawl.settings.files import Tree
from pawl.settings.guardrails import preset
from pawl.workspace.bench_files import WorkspaceFiles

pytestmark = pytest.mark.spec("A9", "E2")

CART = b"from shop import prices\n\nclass Cart:\n    def total(self):\n        return prices.sum(3)\n"
PAGES = (
    IndexPage("shop/cart.py", CART, FileKind.CODE, "python"),
    IndexPage("b.go", b'package c\nimport "fmt"\nfunc Third(x int) { fmt.Println(x) }\n', FileKind.CODE, "go"),
    IndexPage("h.php", b"<?php function eighth() {}\n", FileKind.CODE, ""),
    IndexPage("notes.md", "# Überall\n\n12 words and 3rd again, again\n".encode(), FileKind.PROSE, ""),
    IndexPage("empty.py", b"", FileKind.CODE, "python"),
)
TABLES = ("file", "definition", "piece", "import", "edge", "occurrence")


@pytest.fixture(scope="module")
def parsers() -> Iterator[Parsers]:
    with Parsers(ParserLimits(processes=2)) as made:
        yield made


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_the_rows_that_a_process_makes_are_those_made_here(page: IndexPage, parsers: Parsers):
    assert parsers.rows(page) == read(page, Tokens())


def test_the_rows_of_many_files_come_in_their_order(parsers: Parsers):
    pages = [PAGES[0]._replace(path=f"{number}.py") for number in range(600)]
    assert [page.path for page, _ in parsers.rows_of_all(iter(pages))] == [page.path for page in pages]


def test_many_large_files_are_not_all_read_ahead(parsers: Parsers):
    taken: list[int] = []

    def pages() -> Iterator[IndexPage]:
        for number in range(40):
            taken.append(number)
            yield IndexPage(f"{number}.txt", b"word " * 200_000, FileKind.PROSE, "")

    next(rows := parsers.rows_of_all(pages()))
    assert len(taken) < 10
    rows.close()


def test_a_file_that_kills_its_parser_has_its_words_and_no_definitions():
    page = IndexPage("deep.rb", b"def helpful\nend\n" + b"! <<Alambda " * 2_000, FileKind.CODE, "ruby")
    with Parsers(ParserLimits(memory_bytes=400 << 20, seconds=2.0)) as parsers:
        rows = parsers.rows(page)
        after = parsers.rows(PAGES[0])
    assert not rows.complete and not rows.definitions
    assert [row.path for row in rows.pieces] == ["deep rb"] and "helpful" in rows.pieces[0].body.split()
    assert [row.name for row in after.definitions] == ["Cart", "total"]


@pytest.mark.attack("A15")
@pytest.mark.parametrize(
    "answer",
    [
        b"not json\n",
        b"{}\n",
        b"[true, [], []]\n",
        b"[true, 3, [], []]\n",
        b'[true, [["function", "f"]], [], []]\n',
        b'[true, [["virus", "f", "f", 1, 1, 1, 0, "", ""]], [], []]\n',
        b'[true, [["function", "f", "f", {}, 1, 1, 0, "", ""]], [], []]\n',
        b'[true, [], [[1, null, ""]], []]\n',
        b'[true, [], [[1, "os", "no json"]], []]\n',
        b'[true, [], [[1, "os", "[[1, 2]]"]], []]\n',
        b'[true, [], [], [[1, 2, "3", "", "", "", "", ""]]]\n',
    ],
)
def test_an_answer_that_is_not_the_rows_of_a_file_is_refused(answer: bytes):
    with pytest.raises(ValueError):
        Rows.read(answer)


def rows_of(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with sqlite3.connect(path) as connection:
        return {table: sorted(connection.execute(f"SELECT * FROM {table}"), key=repr) for table in TABLES}


def test_an_index_is_the_same_however_many_processes_made_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "work"
    for page in PAGES:
        path = folder / page.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(page.data)
        # A file of this moment is kept as unsure, which depends on how fast the index is made.
        os.utime(path, (1_700_000_000, 1_700_000_000))
    made = []
    for count in (1, 3):
        monkeypatch.setattr("os.cpu_count", lambda count=count: count)
        database = tmp_path / f"{count}.db"
        with Tree(folder) as tree, Index(database, WorkspaceFiles(tree, preset("standard"))) as index:
            index.refresh()
            made.append(rows_of(database))
    assert made[0] == made[1]
    assert len(made[0]["file"]) == len(PAGES) and len(made[0]["definition"]) == 3


def test_a_key_that_is_configured_is_neither_in_the_index_nor_given_to_the_parser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(redact, "PROCESS", Redactor(["plainlettersofakeythatiscalm"]))
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.py").write_text(
        'def sign(word="plainlettersofakeythatiscalm"):\n    return plainlettersofakeythatiscalm\n'
    )
    with Tree(folder) as tree, Index(tmp_path / "i.db", WorkspaceFiles(tree, preset("standard"))) as index:
        index.refresh()
    assert "plainletters" not in repr(rows_of(tmp_path / "i.db"))
    assert [row[2] for row in rows_of(tmp_path / "i.db")["definition"]] == ["sign"]


@given(st.text(alphabet="ab_Z019é² \n.;\0\x1f", max_size=40))
def test_the_tokens_of_a_text_are_those_of_its_words(text: str):
    expected = " ".join(" ".join(tokens(word)) for word in WORD.findall(text))
    assert Tokens().of(text) == expected
