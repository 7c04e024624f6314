"""`pawl locate`: which files and definitions must change for an issue, with no model."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import TYPE_CHECKING

from pawl.core.errors import UsageError
from pawl.settings import files as bounded
from pawl.ui.cli.call import Call
from pawl.ui.cli.encoder import Json, picked
from pawl.ui.cli.parser import Command

if TYPE_CHECKING:
    from pawl.code.code_model import Hit
    from pawl.workspace.project import Project

_LARGEST_ISSUE = 4 << 20
_HEAD = 8192


def words(parser: ArgumentParser) -> None:
    parser.add_argument("text", nargs="*", metavar="TEXT", help="what is wrong or should change; or pipe it in")
    parser.add_argument("--issue-file", metavar="F", help="read the text from a file; '-' for stdin")
    parser.add_argument("--workspace", metavar="DIR", help="the same as -C")
    parser.add_argument("--top", type=int, default=10, metavar="K", help="how many files (default 10)")
    parser.add_argument("--symbols", action="store_true", help="show the definitions that may change")
    parser.add_argument("--no-tests", action="store_true", help="leave out test files")
    parser.add_argument("--no-history", action="store_true", help="do not use the commit history")


DECLARED = {
    "locate": Command(
        words=words,
        example="pawl locate 'prices are rounded twice'\n  pawl locate --issue-file issue.md --symbols --top 5",
        reads=True,
    )
}


def locate(shop: Project, call: Call) -> int:
    from pawl.checks.report_readers import suspected
    from pawl.code.code_model import Query
    from pawl.code.librarian import everything, open_librarian

    options = call.options
    text = _text(call)
    if options.top < 1:
        raise UsageError(f"--top {options.top} shows nothing", advice="give a number from 1")
    query = Query(
        text=text, suspicions=suspected(shop, text), tests=not options.no_tests, history=not options.no_history
    )
    with open_librarian(shop, shows=everything) as librarian:
        left = librarian.refresh().left
        if left:
            call.aside.say(f"files not indexed yet: {left:,}; run the command again to index more")
        hits = librarian.locate(query, options.top)
        empty = not hits and librarian.is_empty
    if options.json:
        call.emit({"files": [_json(hit) for hit in hits]})
    else:
        _show(hits, call, empty=empty)
    return 0


def _text(call: Call) -> str:
    """The words of the command line, a file, or what is piped in."""
    given, file = " ".join(call.options.text), call.options.issue_file
    if given.strip() and file is not None:
        raise UsageError("there is a text and an --issue-file", advice="give one of them")
    if file is not None and file != "-":
        text = _read(Path(file))
    elif file == "-" or (not call.options.text and not sys.stdin.isatty()):
        text = _decoded(sys.stdin.buffer.read(_LARGEST_ISSUE), "what is piped in")
    else:
        text = given
    if not text.strip():
        raise UsageError("there is no text to search for", advice="pawl locate 'what is wrong', or --issue-file FILE")
    return text


def _read(file: Path) -> str:
    try:
        with bounded.opened(file) as opened:
            data = opened.read(_LARGEST_ISSUE)
    except OSError as error:
        raise UsageError(
            f"the issue file {str(file)!r} cannot be read: {error.strerror}", advice="check the path of --issue-file"
        ) from error
    return _decoded(data, f"the issue file {str(file)!r}")


def _decoded(data: bytes, what: str) -> str:
    if b"\0" in data[:_HEAD]:
        raise UsageError(f"{what} is binary", advice="give it as text in UTF-8")
    return data.decode("utf-8", "replace")


def _json(hit: Hit) -> Json:
    symbols = [{"name": one.qualified, **picked(one, "kind line start end")} for one in hit.symbols]
    return {**picked(hit, "path score reasons"), "symbols": symbols}


def _show(hits: list[Hit], call: Call, *, empty: bool) -> None:
    if empty:
        call.out.say("there are no source files in this workspace")
    elif not hits:
        call.out.say("nothing in this workspace fits")
    for hit in hits:
        call.out.say(f"{hit.score:7.2f}  {hit.path}", "bold")
        if hit.reasons:
            call.out.hint(f"         {'; '.join(hit.reasons)}")
        if call.options.symbols:
            for symbol in hit.symbols:
                call.out.say(f"         {hit.path}:{symbol.line}  {symbol.kind} {symbol.qualified}")
