"""`pawl policy` and `pawl prompts`: who may do what, and what is sent."""

from __future__ import annotations

import difflib
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pawl.core.errors import UsageError
from pawl.core.run import Mode, RoleName, Stage
from pawl.ui.cli.call import Call
from pawl.ui.cli.encoder import picked
from pawl.ui.cli.parser import Command

if TYPE_CHECKING:
    from pawl.workspace.project import Project


def policy_words(parser: ArgumentParser) -> None:
    parser.add_argument("--mode", choices=["chat", "agent"], help="only this mode")
    parser.add_argument("--stage", choices=[str(stage) for stage in Stage], help="only this stage")
    parser.add_argument("--role", choices=[str(role) for role in RoleName], help="only this role")
    parser.add_argument("--markdown", action="store_true", help="the whole table as Markdown")


def prompts_words(parser: ArgumentParser) -> None:
    parser.add_argument("action", choices=["list", "show", "check"], metavar="ACTION", help="list, show or check")
    parser.add_argument("name", nargs="?", metavar="NAME", help="the prompt to show, such as stages/act")


DECLARED = {
    "policy": Command(words=policy_words, example="pawl policy --mode chat --role artisan", reads=True),
    "prompts": Command(words=prompts_words, example="pawl prompts show stages/act", reads=True),
}


def policy(shop: Project, call: Call) -> int:
    from pawl.agent import policy as rules

    options = call.options
    if options.markdown:
        if options.json or options.mode or options.stage or options.role:
            raise UsageError("--markdown writes the whole table, as Markdown", advice="leave out the other options")
        call.out.put(rules.as_markdown())
        return 0
    rows = rules.policy_rows(
        Mode(options.mode) if options.mode else None,
        Stage(options.stage) if options.stage else None,
        RoleName(options.role) if options.role else None,
    )
    if options.json:
        told = "tools prompts reasoning approval contract"
        return call.emit({"rows": [{**picked(row, "mode stage role"), **picked(row.decision, told)} for row in rows]})
    lines = [
        (row.mode, row.stage, row.role, row.decision.reasoning, " ".join(row.decision.tools) or "–") for row in rows
    ]
    call.out.table(("mode", "stage", "role", "reasoning", "tools"), lines, flexible=4)
    return 0


def prompts(shop: Project, call: Call) -> int:
    action, name = call.options.action, call.options.name
    if name is not None and action != "show":
        raise UsageError(f"'pawl prompts {action}' is about all prompts, not {name!r}", advice="show takes a name")
    return _ACTIONS[action](shop, call)


def _list(shop: Project, call: Call) -> int:
    from pawl.agent import policy as rules

    repository = rules.prompts(shop.config, shop.workspace)
    found = [repository.get(name) for name in repository.names()]
    if call.options.json:
        return call.emit({"prompts": [picked(one, "name purpose source") for one in found]})
    rows = [(one.name, one.purpose, "" if one.source.startswith("prompts/") else one.source) for one in found]
    call.out.table(("prompt", "purpose", "overridden by"), rows, flexible=1)
    return 0


def _show(shop: Project, call: Call) -> int:
    from pawl.agent import policy as rules

    if call.options.name is None:
        raise UsageError("no prompt is named", advice="'pawl prompts list' lists them")
    repository = rules.prompts(shop.config, shop.workspace)
    names = repository.names()
    if call.options.name not in names:
        raise UsageError(f"there is no prompt {call.options.name!r}", advice=_similar(call.options.name, names))
    prompt = repository.get(call.options.name)
    return call.answer(picked(prompt, "name purpose source text"), prompt.text)


def _similar(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else "'pawl prompts list' lists them"


def _check(shop: Project, call: Call) -> int:
    from pawl.agent import policy as rules

    faults = rules.prompt_faults(shop.config, shop.workspace)
    text = "\n".join(fault.text for fault in faults) or "every prompt is valid"
    return call.answer({"faults": [picked(one, "path line what") for one in faults]}, text, 52 if faults else 0)


_ACTIONS: dict[str, Callable[[Project, Call], int]] = {"list": _list, "show": _show, "check": _check}
