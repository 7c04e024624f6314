"""What a person sees: plain lines when piped, colour and tables in a terminal. Hostile text is shown, not obeyed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence

from pawl.core.change import ChangeSet
from pawl.core.display import safe_text
from pawl.core.patch import git_patch, summary
from pawl.core.ports import BlobReader

_STYLES = {"+": "green", "-": "red", "@": "cyan", "d": "bold", "i": "dim", "n": "dim", "o": "dim"}

MARKS = {"created": "+", "deleted": "-", "modified": "~"}


def emit(body: object) -> None:
    """One JSON object on stdout. Names that are not UTF-8 come out as the surrogate escapes they are read with."""
    print(json.dumps(body, ensure_ascii=True, default=str))


def is_terminal() -> bool:
    return sys.stdout.isatty()


def say(text: str = "") -> None:
    """One line for a person, made safe."""
    print(safe_text(text).text)


def warn(text: str) -> None:
    sys.stderr.write(safe_text(text).text + "\n")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    every = [[safe_text(cell).text for cell in row] for row in rows]
    if not is_terminal():
        for row in every:
            print("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(*heads, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for row in every:
        grid.add_row(*(Text(cell, overflow="fold") for cell in row))
    Console(highlight=False).print(grid)


def show_changes(changes: ChangeSet, blobs: BlobReader, *, most: int = 12) -> None:
    """A line for each path, at most so many."""
    rows = summary(changes, blobs)
    for row in rows[:most]:
        counts = "binary" if row.binary else f"+{row.added} −{row.removed}" if row.added or row.removed else ""
        say(f"  {MARKS.get(row.what, '·')} {row.path}  {row.what if row.what not in MARKS else ''}{counts}".rstrip())
    if len(rows) > most:
        say(f"  … and {len(rows) - most} more")


def show_patch(changes: ChangeSet, blobs: BlobReader) -> None:
    """The patch: exact bytes into a pipe, coloured and safe in a terminal."""
    patch = git_patch(changes, blobs)
    if not is_terminal():
        sys.stdout.flush()
        sys.stdout.buffer.write(patch)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for line in patch.decode("utf-8", "replace").splitlines():
        console.print(Text(safe_text(line).text, style=_STYLES.get(line[:1], "")))


def brief(title: str, most: int = 72) -> str:
    """A title on one line."""
    line = " ".join(title.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def changes_json(changes: ChangeSet, blobs: BlobReader) -> list[dict[str, object]]:
    return [
        {"path": row.path, "what": row.what, "added": row.added, "removed": row.removed, "binary": row.binary}
        for row in summary(changes, blobs)
    ]


def ask(question: str, answers: str) -> str:
    """One of the letters in `answers`; the first when the user gives none, or when the input ends."""
    while True:
        try:
            answer = input(f"{question} [{'/'.join(answers)}] ").strip().lower()[:1]
        except EOFError:
            return answers[0]
        if not answer:
            return answers[0]
        if answer in answers:
            return answer
