"""One question to a language server, asked inside the sandbox: which edits mend this, or what is wrong in these files?

Runs as a process of its own on the bench, with a language server below it, so that both end with the sandbox. What is
asked comes as one word, the answer goes to standard output as one line.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pawl.checks.lsp.client import Document, LanguageServer, Span, applied
from pawl.checks.lsp.servers import Server, server
from pawl.core.errors import ParseFailed, PawlError, ServerUnavailable, TimedOut

MOST_ACTIONS = 8
_WARNING = 2
"""Severities above this are hints."""


def main() -> None:
    question = json.loads(sys.argv[1])
    try:
        answer = asyncio.run(_answer(question))
    except PawlError as error:
        answer = {"skipped": error.message}
    sys.stdout.write(json.dumps(answer) + "\n")


async def _answer(question: Mapping[str, Any]) -> dict[str, Any]:
    known = server(question["server"])
    programs: list[list[str]] = question["programs"]
    program = next((words for words in programs if shutil.which(words[0])), programs[-1])
    if shutil.which(program[0]) is None:
        return {"skipped": f"{known.name} is not installed"}
    start = known.start(program, question["root"], question["python"])
    deadline = time.monotonic() + float(question["seconds"])
    async with LanguageServer(start, limit=float(question["seconds"])) as opened:
        asked = _read if "paths" in question else _ask
        try:
            return await asked(opened, known, question, deadline)
        except ServerUnavailable:
            await opened.restart()
            return await asked(opened, known, question, deadline)


async def _ask(opened: LanguageServer, known: Server, question: Mapping[str, Any], deadline: float) -> dict[str, Any]:
    return await _Asking(opened, known, question, deadline).run()


async def _read(opened: LanguageServer, known: Server, question: Mapping[str, Any], deadline: float) -> dict[str, Any]:
    """The findings in each file; files for which no time was left are named."""
    found: dict[str, list[dict[str, Any]]] = {}
    late: list[str] = []
    for path in question["paths"]:
        language = known.language(path)
        if language is not None:
            opened.show(path, language, Path(question["root"], path).read_text(encoding="utf-8", errors="replace"))
    for path in question["paths"]:
        if time.monotonic() > deadline:
            late.append(path)
            continue
        try:
            found[path] = [_brief(one) for one in await opened.diagnostics(path)]
        except TimedOut:
            late.append(path)
    return {"diagnostics": found, "late": late}


def _brief(diagnostic: Mapping[str, Any]) -> dict[str, Any]:
    start = diagnostic["range"]["start"]
    return {
        "line": int(start["line"]) + 1,
        "column": int(start["character"]) + 1,
        "severity": int(diagnostic.get("severity") or 1),
        "code": str(diagnostic.get("code") or ""),
        "message": str(diagnostic["message"]),
    }


class _Asking:
    def __init__(self, opened: LanguageServer, known: Server, question: Mapping[str, Any], deadline: float) -> None:
        self._server = opened
        self._known = known
        self._path: str = question["path"]
        self._name: str = question["name"]
        self._line: int = question["line"]
        self._trials = [tuple(Span(*span) for span in trial) for trial in question["trials"]]
        self._deadline = deadline
        self._text = Path(question["root"], self._path).read_text(encoding="utf-8")

    async def run(self) -> dict[str, Any]:
        """The server's own quick fixes that mend it, and which of the trials do."""
        before = await self._diagnosed(self._text)
        target = self._target(before)
        if target is None:
            return {"found": False, "fixes": [], "trials": []}
        trials = [await self._mends(applied(self._text, trial), before, target) for trial in self._trials]
        await self._diagnosed(self._text)
        fixes: list[dict[str, Any]] = []
        for title, spans in await self._offered(target):
            if time.monotonic() > self._deadline or len(fixes) >= MOST_ACTIONS:
                break
            if await self._mends(applied(self._text, spans), before, target):
                fixes.append({"title": title, "spans": [list(asdict(span).values()) for span in spans]})
        return {"found": True, "fixes": fixes, "trials": trials}

    async def _diagnosed(self, text: str) -> list[dict[str, Any]]:
        language = self._known.language(self._path)
        if language is None:
            raise ParseFailed(f"{self._known.name} does not know {self._path!r}", advice="ask another server")
        self._server.show(self._path, language, text)
        return await self._server.diagnostics(self._path)

    def _target(self, found: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
        """The diagnostic of the undefined name, the nearest to the line."""
        about = [one for one in found if one.get("code") in self._known.undefined and _names(one, self._name)]
        return min(about, key=lambda one: abs(one["range"]["start"]["line"] + 1 - self._line), default=None)

    async def _offered(self, target: Mapping[str, Any]) -> list[tuple[str, tuple[Span, ...]]]:
        """The server's quick fixes that change this file only, and that do not just hide the diagnostic."""
        document = Document(self._text, self._server.encoding)
        offered = []
        for action in await self._server.actions(self._path, target):
            edits = self._server.edits(action)
            if set(edits) == {self._path} and not any(
                self._known.silences.search(edit["newText"]) for edit in edits[self._path]
            ):
                offered.append((str(action.get("title", "")), document.spans(edits[self._path])))
        return offered

    async def _mends(self, text: str, before: list[dict[str, Any]], target: Mapping[str, Any]) -> bool:
        """Whether the targeted diagnostic is gone and nothing new has come."""
        after = _counted(await self._diagnosed(text))
        old = _counted(before)
        return after[_key(target)] < old[_key(target)] and not after - old


def _names(diagnostic: Mapping[str, Any], name: str) -> bool:
    words = "".join(one if one.isalnum() or one == "_" else " " for one in str(diagnostic["message"])).split()
    return name in words


def _key(diagnostic: Mapping[str, Any]) -> tuple[str, str]:
    return str(diagnostic.get("code", "")), str(diagnostic["message"])


def _counted(found: Iterable[Mapping[str, Any]]) -> Counter[tuple[str, str]]:
    return Counter(_key(one) for one in found if int(one.get("severity") or 1) <= _WARNING)


if __name__ == "__main__":
    main()
