"""`pawl skills` and `pawl agents`: what agents may read here and whom they may send, one of them, and all faults."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pawl.core.errors import NotFound, UsageError
from pawl.ui.cli.call import Call
from pawl.ui.cli.encoder import picked
from pawl.ui.cli.parser import Command

if TYPE_CHECKING:
    from pawl.workspace.project import Project


def words(parser: ArgumentParser) -> None:
    actions = ["list", "show", "check"]
    parser.add_argument("action", nargs="?", default="list", choices=actions, metavar="ACTION", help=", ".join(actions))
    parser.add_argument("name", nargs="?", metavar="NAME", help="the one to show")


DECLARED = {
    "skills": Command(words=words, example="pawl skills show refactoring", reads=True),
    "agents": Command(words=words, example="pawl agents show reviewer", reads=True),
}


def _asked(call: Call) -> tuple[str, str | None]:
    """The action and the name, where both fit."""
    action, name, what = call.options.action, call.options.name, f"pawl {call.options.command}"
    if (name is None) is (action == "show"):
        advice = f"name one: '{what} list' lists them" if action == "show" else "only 'show' takes a name"
        raise UsageError(f"'{what} {action}' {'needs a' if action == 'show' else 'takes no'} name", advice=advice)
    return action, name


def _told_faults(call: Call, faults: Sequence[object], sound: str) -> int:
    found = [picked(one, "path what") for one in faults]
    text = "\n".join(f"{one['path']}: {one['what']}" for one in found) or sound
    return call.answer({"faults": found}, text, 52 if faults else 0)


def agents(shop: Project, call: Call) -> int:
    from pawl.agent.policy import policy_of
    from pawl.agent.sub_agents import agent_faults, sub_agents

    action, name = _asked(call)
    if action == "check":
        return _told_faults(call, agent_faults(shop.config, shop.workspace), "every sub-agent is valid")
    found = sub_agents(shop.config, shop.workspace)
    roles = policy_of(shop.config, shop.workspace).roles
    tools = {one: sorted(roles[one].tools) for one in found}
    every = {one: {**picked(found[one], "name description source"), "tools": tools[one]} for one in found}
    if name is not None:
        if name not in found:
            known = ", ".join(sorted(found)) or "none"
            raise NotFound(f"there is no sub-agent {name!r}", advice=f"there are: {known}")
        return call.answer({**every[name], "text": found[name].text}, found[name].text)
    if call.options.json:
        return call.emit({"agents": [every[one] for one in sorted(every)]})
    rows = [(one, found[one].description, ", ".join(tools[one]), found[one].source) for one in sorted(every)]
    if rows:
        call.out.table(("sub-agent", "for", "tools", "from"), rows, flexible=1)
    else:
        call.out.say("there are no sub-agents here")
        call.out.hint("write one: .pawl/agents/NAME.md (docs/extending.md#a-sub-agent), then pawl trust")
    return 0


def skills(shop: Project, call: Call) -> int:
    from pawl.agent.skill_library import faults_of, skill_named, skills_of

    action, name = _asked(call)
    if action == "check":
        return _told_faults(call, faults_of(shop.config, shop.workspace), "every skill is valid")
    found = skills_of(shop.config, shop.workspace)
    if name is not None:
        skill = skill_named(found, name)
        return call.answer({**picked(skill, "name description source text"), "files": skill.files()}, skill.read())
    every = [found[one] for one in sorted(found)]
    if call.options.json:
        return call.emit({"skills": [picked(one, "name description source") for one in every]})
    rows = [(one.name, one.description, one.source.removesuffix("/SKILL.md")) for one in every]
    call.out.table(("skill", "for", "from"), rows, flexible=1)
    return 0
