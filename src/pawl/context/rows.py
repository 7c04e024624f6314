"""What the index keeps of one file, as the rows of its tables: made where the file is parsed, and written elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from pawl.context.languages import languages
from pawl.context.parsing import Parsed, parse
from pawl.context.pieces import piece_tokens, pieces, prose_tokens
from pawl.context.sorting import Kind
from pawl.context.tokens import Tokens
from pawl.core.outline import DefinitionKind
from pawl.core.redact import redacted_each

_KINDS = frozenset(kind.value for kind in DefinitionKind)


class Page(NamedTuple):
    """One file on its way into the index."""

    path: str
    data: bytes
    """UTF-8, with the one line break that parsers know."""
    kind: Kind
    language: str
    """Empty when no parser knows it."""

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


class DefinitionRow(NamedTuple):
    kind: str
    name: str
    qualified: str
    start: int
    line: int
    stop: int
    depth: int
    signature: str
    doc: str


class ImportRow(NamedTuple):
    line: int
    module: str
    names: str
    """JSON: what is taken from the module."""


class PieceRow(NamedTuple):
    start: int
    stop: int
    length: int
    calls: str
    uses: str
    path: str
    names: str
    body: str
    """The last three are tokens."""


R = TypeVar("R", DefinitionRow, ImportRow, PieceRow)


class Rows(NamedTuple):
    complete: bool
    definitions: Sequence[DefinitionRow] = ()
    imports: Sequence[ImportRow] = ()
    pieces: Sequence[PieceRow] = ()

    @classmethod
    def read(cls, answer: bytes) -> Rows:
        """From what a process wrote; a ValueError for what is not the rows of a file, because it may write anything."""
        try:
            complete, definitions, imports, found = json.loads(answer)
            rows = cls(
                bool(complete),
                [_sound(row, DefinitionRow) for row in definitions],
                [_sound(row, ImportRow) for row in imports],
                [_sound(row, PieceRow) for row in found],
            )
            pairs = [pair for row in rows.imports for pair in json.loads(row.names)]
            if any([*map(type, pair)] != [str, str] for pair in pairs):
                raise ValueError("an import of no name")
        except TypeError as error:
            raise ValueError(str(error)) from error
        if not _KINDS.issuperset(row.kind for row in rows.definitions):
            raise ValueError("a definition of no kind")
        return rows


def _sound(row: Iterable[object], form: type[R]) -> R:
    if tuple(map(type, row)) != _FORMS[form]:
        raise ValueError(f"not a {form.__name__}")
    return form._make(row)


_FORMS: Mapping[type, tuple[type, ...]] = {
    DefinitionRow: (str, str, str, int, int, int, int, str, str),
    ImportRow: (int, str, str),
    PieceRow: (int, int, int, str, str, str, str, str),
}


def read(page: Page, tokens: Tokens) -> Rows:
    """Parses a file and makes its rows; only where a hostile file costs nothing but the process."""
    parsed = parse(page.data, languages()[page.language]) if page.language else Parsed()
    return rows(page, parsed, tokens)


def rows(page: Page, parsed: Parsed, tokens: Tokens) -> Rows:
    """The rows of a file of which this much could be parsed."""
    definitions = parsed.definitions
    signatures = redacted_each([one.signature for one in definitions])
    docs = redacted_each([one.doc for one in definitions])
    return Rows(
        parsed.complete,
        [
            DefinitionRow(one.kind, one.name, one.qualified, one.start, one.line, one.end, one.depth, signature, doc)
            for one, signature, doc in zip(definitions, signatures, docs, strict=True)
        ],
        [ImportRow(one.line, one.module, json.dumps(one.names)) for one in parsed.imports],
        _pieces(page, parsed, tokens),
    )


def _pieces(page: Page, parsed: Parsed, tokens: Tokens) -> list[PieceRow]:
    path, text = tokens.of(page.path), page.text
    lines = text.count("\n") + 1
    if page.kind is Kind.PROSE:
        body = prose_tokens(text, tokens)
        return [PieceRow(1, lines, body.count(" ") + 1, "", "", path, "", body)]
    found: list[PieceRow] = []
    for piece, names, body in piece_tokens(pieces(parsed, lines), text, tokens):
        calls, uses = " ".join(sorted(piece.calls)), " ".join(sorted(piece.uses))
        # The path belongs to the first piece, so that a file is not found by it many times.
        where = "" if found else path
        found.append(PieceRow(piece.start, piece.stop, body.count(" ") + 1, calls, uses, where, names, body))
    return found
