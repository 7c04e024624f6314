"""`pawl skills`: the skills that agents may read here, the text of one, and their faults."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TYPE_CHECKING

from pawl.core.errors import UsageError
from pawl.ui.cli.call import Call
from pawl.ui.cli.encoder import picked
from pawl.ui.cli.parser import Command

if TYPE_CHECKING:
    from pawl.workspace.project import Project


def skills_words(parser: ArgumentParser) -> None:
    actions = ["list", "show", "check"]
    parser.add_argument("action", nargs="?", default="list", choices=actions, metavar="ACTION", help=", ".join(actions))
    parser.add_argument("name", nargs="?", metavar="NAME", help="the skill to show")


DECLARED = {"skills": Command(words=skills_words, example="pawl skills show refactoring", reads=True)}


def skills(shop: Project, call: Call) -> int:
    from pawl.agent.skill_library import faults_of, skill_named, skills_of

    action, name = call.options.action, call.options.name
    if (name is None) is (action == "show"):
        advice = "name one: 'pawl skills list' lists them" if action == "show" else "only 'show' takes a name"
        raise UsageError(f"'pawl skills {action}' {'needs a' if action == 'show' else 'takes no'} name", advice=advice)
    if action == "check":
        faults = faults_of(shop.config, shop.workspace)
        text = "\n".join(f"{one.path}: {one.what}" for one in faults) or "every skill is sound"
        return call.answer({"faults": [picked(one, "path what") for one in faults]}, text, 52 if faults else 0)
    found = skills_of(shop.config, shop.workspace)
    if action == "show":
        skill = skill_named(found, name)
        return call.answer({**picked(skill, "name description source text"), "files": skill.files()}, skill.read())
    every = [found[one] for one in sorted(found)]
    if call.options.json:
        return call.emit({"skills": [picked(one, "name description source") for one in every]})
    call.out.table(("skill", "for", "from"), [(one.name, one.description, one.source) for one in every], flexible=1)
    return 0
