"""Markdown for a terminal: cut into finished blocks as it comes, each drawn once. It is shown, not obeyed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from pawl.core.display import safe_words
from pawl.core.redact import without_known

if TYPE_CHECKING:
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.segment import Segment


LONGEST_PART = 60
"""Lines of a block after which what is there is shown; the rest of it is a block of its own."""
_LIVE = re.compile(r"(?<!\\)(?P<before>(?:\\\\)*)(?:(?P<image>!\[)|(?P<sign>\](?=[(:])|<(?=[A-Za-z/!?])))")
"""Text that a viewer of Markdown would fetch, hide behind a label or take for a tag."""
_FENCE = re.compile(r" {0,3}(?P<marks>`{3,}|~{3,})(?P<info>[^`]*)$")


class Blocks:
    """Cuts a text into blocks as it comes: a paragraph, a list with all it holds, a fence."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        """Whole lines of the block that has begun."""
        self._line = ""
        self._fence = ""
        """The line that opened the fence."""

    @property
    def rest(self) -> str:
        """The text of the block that is not finished."""
        return "\n".join([*self._lines, self._line]).strip("\n")

    def feed(self, text: str) -> Iterator[str]:
        """The blocks that are finished by this text."""
        *whole, self._line = (self._line + text).split("\n")
        for line in whole:
            yield from self._take(line)
        if self._ends_before(self._line):
            yield from self._cut()

    def close(self) -> Iterator[str]:
        """The last block, finished or not."""
        if self._line:
            self._lines.append(self._line)
        self._line = ""
        yield from self._cut()
        self._fence = ""

    def _take(self, line: str) -> Iterator[str]:
        if self._ends_before(line):
            yield from self._cut()
        fence = _FENCE.match(line)
        self._lines.append(line)
        if self._fence:
            if line.strip() and not line.strip().strip(self._mark[0]) and len(line.strip()) >= len(self._mark):
                self._fence = ""
                yield from self._cut()
            elif len(self._lines) > LONGEST_PART:
                opened = self._fence
                self._lines.append(self._mark)
                yield from self._cut()
                self._lines.append(opened)
        elif fence is not None:
            before, self._lines = self._lines[:-1], self._lines[-1:]
            if any(one.strip() for one in before):
                yield "\n".join(before).strip("\n")
            self._fence = line
        elif len(self._lines) > LONGEST_PART and not line.strip():
            yield from self._cut()

    @property
    def _mark(self) -> str:
        found = _FENCE.match(self._fence)
        return found["marks"] if found else "```"

    def _ends_before(self, line: str) -> bool:
        """Whether a new block begins here: after an empty line, with something that is not indented."""
        if self._fence or not self._lines or self._lines[-1].strip() or not line.strip():
            return False
        return not line[0].isspace() and any(one.strip() for one in self._lines)

    def _cut(self) -> Iterator[str]:
        block = "\n".join(self._lines).strip("\n")
        self._lines = []
        if block.strip():
            yield block


def drawn(text: str, width: int, *, color: bool) -> str:
    """A block as lines for a terminal of that width, without a last line end."""
    console = _console(max(20, width), color=color)
    from rich.segment import Segment

    lines = Segment.split_lines(console.render(_markdown()(without_known(text))))
    return "\n".join(_line(line, color=color) for line in lines).strip("\n")


def inert(page: str) -> str:
    """A page that no viewer fetches anything for: images, links and tags outside of code stand there as text."""
    from markdown_it import MarkdownIt

    page = safe_words(page)
    blocks = MarkdownIt("commonmark").disable(["html_block", "html_inline"]).parse(page)
    code = [range(*block.map) for block in blocks if block.type in ("fence", "code_block") and block.map]
    lines = page.split("\n")
    inside = {number for several in code for number in several}
    return "\n".join(line if at in inside else _LIVE.sub(_as_text, line) for at, line in enumerate(lines))


def _as_text(found: re.Match[str]) -> str:
    return found["before"] + ("\\!\\[" if found["image"] else f"\\{found['sign']}")


def _line(segments: list[Segment], *, color: bool) -> str:
    """One line with its colours, nothing of the text obeyed, and no blanks at its end."""
    from rich.color import ColorSystem

    # Once more: what stands as `&#x202e;` in the text is a character only now.
    parts = [(safe_words(one.text), one.style) for one in segments if not one.control]
    while parts and not parts[-1][0].strip():
        parts.pop()
    if parts:
        parts[-1] = (parts[-1][0].rstrip(), parts[-1][1])
    if not color:
        return "".join(text for text, _ in parts)
    return "".join(style.render(text, color_system=ColorSystem.STANDARD) if style else text for text, style in parts)


@lru_cache(maxsize=4)
def _console(width: int, *, color: bool) -> Console:
    import io

    from rich.console import Console
    from rich.theme import Theme

    return Console(
        file=io.StringIO(),
        width=width,
        theme=Theme({"markdown.code": "cyan", "markdown.link": "none", "markdown.link_url": "underline"}),
        force_terminal=True,
        color_system="standard" if color else None,
        highlight=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )


@lru_cache(maxsize=1)
def _markdown() -> type[Markdown]:
    """Every address in sight, headings on the left, code without a frame or a ground, so that it can be copied."""
    from markdown_it import MarkdownIt
    from rich import markdown
    from rich.console import ConsoleOptions, RenderResult
    from rich.padding import Padding
    from rich.syntax import Syntax
    from rich.text import Text

    class Heading(markdown.Heading):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            text = self.text.copy()
            text.stylize("bold underline" if self.tag == "h1" else "bold")
            yield text

    class Code(markdown.CodeBlock):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            code = str(self.text).rstrip()
            if console.color_system is None or self.lexer_name == "text":
                yield Padding(Text(code), (0, 0, 0, 2))
            else:
                syntax = Syntax(code, self.lexer_name, theme="ansi_dark", word_wrap=True, background_color="default")
                yield Padding(syntax, (0, 0, 0, 2))

    # Nothing is taken for granted that would not be seen: images and references become links or text, tags stay text.
    parser = MarkdownIt("commonmark").enable(["strikethrough", "table"])
    parser.disable(["image", "reference", "html_block", "html_inline"])

    class PlainMarkdown(markdown.Markdown):
        elements: ClassVar = {**markdown.Markdown.elements, "heading_open": Heading, "fence": Code, "code_block": Code}

        def __init__(self, markup: str) -> None:
            super().__init__("", hyperlinks=False)
            self.markup, self.parsed = markup, parser.parse(markup)

    return PlainMarkdown
