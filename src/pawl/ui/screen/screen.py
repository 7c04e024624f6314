"""Output for a person: plain lines when piped, colour in a terminal. Hostile text is shown, not obeyed."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import ClassVar, Protocol, TextIO

from pawl.core.change import BlobReader, Change, ChangeSet, Node, NodeKind
from pawl.core.display import ERASE_LINE, Flag, safe_drawing, safe_text, safe_words
from pawl.core.patch import FileSummary, What, git_patch, summary, unified
from pawl.core.redact import without_known
from pawl.core.text import one_line as on_one_line

_LINE_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_MARK_STYLES = {"+": "green", "-": "red", "~": "yellow", "!": "bold red"}
_NOT_TEXT = re.compile("[\ud800-\udfff]")
_PLAIN_MARKS = str.maketrans(
    {
        "✓": "+",
        "✗": "x",
        "·": "-",
        "…": "...",
        "−": "-",
        "–": "-",
        "→": "->",
        "›": ">",
        "•": "*",
        "│": "|",
        "─": "-",
        "▌": "|",
    }
)
"""Replacements for the marks where the terminal has no Unicode."""


THEMES: Mapping[str, Mapping[str, str]] = {
    "light": {"yellow": "magenta", "dim": "bright_black", "cyan": "blue"},
    "contrast": {"dim": "not dim", "yellow": "bold yellow", "green": "bold green", "red": "bold red"},
}
"""The styles that stand in for those of the dark theme."""


class Screen:
    """A stream that a person may be looking at. What is `aside` is not worth failing for when nobody is there."""

    theme: ClassVar[Mapping[str, str]] = {}
    """The user's, for all screens."""

    def __init__(self, stream: TextIO, *, color: bool, aside: bool = False, draws: bool = False) -> None:
        self.stream = stream
        self.is_terminal = stream.isatty()
        self.draws = draws and self.is_terminal
        """Whether a line can be changed in place."""
        self.color = color and self.is_terminal
        self._aside = aside
        self.reword: Callable[[str], str] = str
        """How commands in hints are written where they are read."""
        self._marks = has_marks(stream)

    @property
    def width(self) -> int:
        try:
            return os.get_terminal_size(self.stream.fileno()).columns or 80
        except OSError:
            return 80

    def say(self, text: str = "", style: str = "") -> None:
        """One line, whatever the text holds."""
        self._write([one_line(text)], [style])

    def paragraph(self, text: str, style: str = "") -> None:
        """One line; in a terminal folded between words, with the rest set in below its first word."""
        import textwrap

        line = one_line(text)
        width = self.width - 1
        if self.is_terminal and cells(line) > width:
            indent = " " * (len(line) - len(line.lstrip()) + 2)
            parts = textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False)
            if parts and max(map(cells, parts)) <= width:
                self._write(parts, [style] * len(parts))
                return
        self._write([line], [style])

    def notes(self, notices: Iterable[str], style: str = "") -> None:
        for notice in notices:
            self.say(f"note: {notice}", style)

    def lines(self, text: str) -> None:
        """A text of several lines, each shown safely."""
        self._write([one_line(line) for line in text.split("\n")], [""])

    def hint(self, text: str) -> None:
        """A line that says what to do next."""
        self.say(self.reword(text), "dim")

    def table(self, heads: Sequence[str], rows: Iterable[Sequence[str]], *, flexible: int) -> None:
        """Columns side by side; in a terminal the flexible one is cut so that each row takes one line."""
        grid = [tuple(heads), *(tuple(one_line(cell) for cell in row) for row in rows)]
        widths = [max(map(cells, column)) for column in zip(*grid, strict=True)]
        if self.is_terminal:
            # Where even that is too wide, the columns of least weight go, which are the last.
            while (rest := sum(widths) - widths[flexible] + 2 * (len(widths) - 1)) + 12 >= self.width > 1:
                if len(widths) <= flexible + 1:
                    break
                widths.pop()
            widths[flexible] = min(widths[flexible], max(12, self.width - rest - 1))
            grid = [row[: len(widths)] for row in grid]
        lines = ["  ".join(map(padded, row, widths)).rstrip() for row in grid]
        self._write(lines, ["bold"] + [""] * (len(lines) - 1))

    def changes(self, changes: ChangeSet, blobs: BlobReader, *, most: int = 12) -> None:
        """A line for each path, at most so many."""
        shown = ChangeSet(changes.changes[:most])
        rows = [_row(change, row) for change, row in zip(shown, summary(shown, blobs), strict=True)]
        self.marked(rows)
        if len(changes) > most:
            self.say(f"  … and {len(changes) - most} more")

    def marked(self, rows: Sequence[tuple[str, str, str]]) -> None:
        """Lines of a mark, a path and a detail, with the details one below the other."""
        width = max((cells(one_line(path)) for _, path, _ in rows), default=0)
        lines = [f"  {mark} {padded(one_line(path), width)}  {detail}".rstrip() for mark, path, detail in rows]
        self._write(lines, [_MARK_STYLES.get(mark, "") for mark, _, _ in rows])

    def patch(self, changes: ChangeSet, blobs: BlobReader, *, most: int | None = None, exact: bool = False) -> None:
        """Show the patch, safe for a person; `exact` bytes go into a pipe, for `git apply`."""
        if exact and not self.is_terminal:
            self.stream.flush()
            self.stream.buffer.write(git_patch(changes, blobs))
            return
        lines = unified(changes, blobs).split("\n")[:-1]
        heads = ("+++ ", "--- ")
        styles = ["bold" if line.startswith(heads) else _LINE_STYLES.get(line[:1], "") for line in lines[:most]]
        self._write(lines[:most], styles)
        if most is not None and len(lines) > most:
            self.say(f"… and {len(lines) - most} more lines")
        flags = safe_text(git_patch(changes, blobs).decode("utf-8", "surrogateescape")).flags
        if flags:
            self.say(f"note: it holds {', '.join(sorted(flags))}, written out above", "bold yellow")

    def ask(self, question: str, answers: str, hint: str) -> str:
        """One of the letters in `answers`; the first when the user gives none, or when the input ends."""
        while True:
            answer = (self.ask_line(f"{question} [{hint}] ") or "").strip().lower()[:1]
            if not answer:
                return answers[0]
            if answer in answers:
                return answer

    def ask_line(self, question: str) -> str | None:
        """The line that the user types; None when the input ends."""
        _forget_what_was_typed()
        self.put(one_line(question))
        line = sys.stdin.readline()
        if not line:
            self.say()
            return None
        return line.rstrip("\n")

    def _write(self, lines: Sequence[str], styles: Sequence[str]) -> None:
        if self.color and any(styles):
            lines = _coloured(lines, styles)
        self.draw("".join(f"{line}\n" for line in lines))

    def put(self, text: str) -> None:
        """Text from wherever: nothing in it is obeyed but newlines and tabs."""
        self._send(safe_words(without_known(text)))

    def draw(self, text: str) -> None:
        """Text that Pawl has put together, with its colours; into a pipe they do not go."""
        self._send(safe_drawing(text) if self.is_terminal else safe_words(text))

    def _send(self, text: str) -> None:
        """The one place that writes text to a person or a program: without the user's own secrets."""
        text = without_known(text)
        try:
            self.stream.write(text if self._marks else text.translate(_PLAIN_MARKS))
            self.stream.flush()
        except OSError:
            if not self._aside:
                raise


class Face(Protocol):
    """Where a person follows a run and is asked: one use of the command line, or a session."""

    @property
    def out(self) -> Screen:
        """Where the answer to the command goes."""
        ...

    @property
    def aside(self) -> Screen:
        """Where Pawl says everything else."""
        ...

    @property
    def live(self) -> bool:
        """Whether `activity` and `preview` are seen."""
        return False

    def line(self, question: str, over: Callable[[], bool] | None = None) -> str | None:
        """Asks for a line and waits for it; None when the input has ended, or for later, and as soon as `over` says
        that the question is, where the face can take one back."""
        ...

    def secret(self, question: str) -> str | None:
        """Asks for a line that is not shown or kept."""
        ...

    def edited(self, text: str, suffix: str) -> str:
        """The text after the user has changed it in an editor."""
        ...

    def activity(self, text: str) -> None:
        """Shows what is being done; empty for nothing."""
        return

    def preview(self, text: str) -> None:
        """Shows the end of what is being said and is not finished."""
        return

    def make_room(self) -> None:
        """Called before a line that stays."""
        return


def agreed(face: Face, question: str) -> bool:
    return (face.line(f"{question} [y yes, n no] ") or "").strip().lower() in ("y", "yes")


class FoldingScreen(Screen):
    """A screen whose lines are all folded."""

    def lines(self, text: str) -> None:
        for line in text.split("\n"):
            self.say(line)

    def say(self, text: str = "", style: str = "") -> None:
        self.paragraph(text, style)


def has_marks(stream: TextIO) -> bool:
    """Whether the stream takes every character."""
    return (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "") in ("utf8", "utf8sig")


def one_line(text: str) -> str:
    """The text as one line in which nothing is hidden."""
    return safe_text(without_known(text)).text.replace("\n", "\\n").replace("\t", "\\t")


def brief(title: str, most: int = 60) -> str:
    """The start of a title, on one line."""
    return on_one_line(title, most)


def warnings(name: str) -> str:
    """Warnings about a name that may deceive the eyes."""
    text = _NOT_TEXT.sub("", name)
    found = {str(flag) for flag in safe_text(text).flags}
    if text != name:
        found.add("bytes that are not text")
    if "\n" in name or "\t" in name:
        found.add(str(Flag.CONTROL))
    return f"! {', '.join(sorted(found))}" if found else ""


def _row(change: Change, row: FileSummary) -> tuple[str, str, str]:
    mark = "+" if change.before is None else "-" if change.after is None else "~"
    folder = "/" if row.kind is NodeKind.DIRECTORY else ""
    detail = "  ".join(part for part in (_counts(change, row), warnings(change.path)) if part)
    return mark, f"{change.path}{folder}", detail


def _counts(change: Change, row: FileSummary) -> str:
    before, after = change.before, change.after
    parts = []
    if row.what is What.REPLACED and before is not None and after is not None:
        parts.append(f"{before.kind} → {after.kind}")
    elif row.kind is NodeKind.LINK:
        parts.append("link")
    elif row.kind is NodeKind.FILE:
        parts.append("binary" if row.binary else f"+{row.added} −{row.removed}" if row.added or row.removed else "")
    parts.extend(_modes(before, after))
    return "  ".join(part for part in parts if part)


def _modes(before: Node | None, after: Node | None) -> Iterator[str]:
    if before is not None and after is not None and before.kind is after.kind and before.mode != after.mode:
        yield f"mode {before.mode:o} → {after.mode:o}"


def _themed(style: str) -> str:
    return " ".join(Screen.theme.get(word, word) for word in style.split())


def _coloured(lines: Sequence[str], styles: Sequence[str]) -> list[str]:
    from rich.color import ColorSystem
    from rich.style import Style

    # The colours that the user's own theme decides; every terminal that has any has these.
    return [
        Style.parse(_themed(style)).render(line, color_system=ColorSystem.STANDARD) if style else line
        for line, style in zip(lines, styles, strict=True)
    ]


def cells(text: str) -> int:
    """How wide the text is in a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text
    )


def cut(text: str, width: int) -> str:
    """The start of the text, in so many cells."""
    if cells(text) <= width:
        return text
    while text and cells(text) > width - 1:
        text = text[:-1]
    return f"{text}…"


def padded(text: str, width: int) -> str:
    shown = cut(text, width)
    return shown + " " * (width - cells(shown))


def counted(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def short_path(path: Path, home: Path) -> str:
    """With `~` for the user's home."""
    return one_line(f"~/{path.relative_to(home)}" if path != home and path.is_relative_to(home) else str(path))


def short_model(model: str) -> str:
    """A file by its name, and nothing longer than a name should be."""
    kind, found, path = model.partition(":")
    name = f"{kind}:{path.rpartition('/')[2]}" if found and "/" in path else model
    return cut(name, 28)


def brief_count(number: int) -> str:
    """`940`, `3.4k` or `1.2M`."""
    if number < 1_000:
        return str(number)
    return f"{number / 1_000:.1f}k" if number < 1_000_000 else f"{number / 1_000_000:.1f}M"


def money(cost: Decimal | None) -> str:
    if cost is None:
        return "price unknown"
    return f"${cost:.2f}" if cost == 0 or cost >= Decimal("0.1") else f"${cost:.4f}"


def _forget_what_was_typed() -> None:
    """Drops what was typed before the question, perhaps to the command: it is no answer."""
    if not sys.stdin.isatty():
        return
    import termios

    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


class LiveLine:
    """Of a terminal that can do it; elsewhere it shows nothing."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._shown = ""

    def show(self, text: str, *, tail: bool = False) -> None:
        """The line from now on; of a `tail` that is too long its end is shown, because what came last tells most."""
        if not self._screen.draws:
            return
        line = one_line(text)
        width = self._screen.width - 1
        line = cut(line[::-1], width)[::-1] if tail else cut(line, width)
        if line != self._shown:
            self._screen.draw(f"{ERASE_LINE if self._shown else ''}{line}")
            self._shown = line

    def clear(self) -> None:
        """Makes room for what stays."""
        if self._shown:
            self._screen.draw(ERASE_LINE)
            self._shown = ""


def when(created: str, *, today: bool = False) -> str:
    """`today` leaves out what is clear to someone who looks now."""
    local = datetime.fromisoformat(created).astimezone()
    if not today:
        return f"{local:%Y-%m-%d %H:%M}"
    return f"{local:%H:%M}" if local.date() == datetime.now().astimezone().date() else f"{local:%Y-%m-%d}"
