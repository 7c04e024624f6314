"""Proposes the rule that means a call: as wide as is useful, and exact where anything wider would allow everything."""

from __future__ import annotations

import re

from pawl.policy.permission_rules import MCP, aliases, command_text
from pawl.policy.shell_programs import hazard, loss, programs, unwrapped
from pawl.policy.shell_script import ShellCommand, Word

_OPTION_OR_PATH = re.compile(r"-|.*[/.=]")
_ONE_MORE = frozenset({"run", "exec", "run-script", "x", "compose", "-m"})


def rule_for(tool: str, what: ShellCommand | str) -> str:
    """The rule for a command, for a tool that names a path, or for the tool as a whole."""
    if isinstance(what, ShellCommand):
        return f"Bash({_command(what)})"
    name = next((alias for alias in ("Read", "Edit") if tool in aliases()[alias]), tool)
    if tool.startswith(MCP) or not what or name == tool:
        return name
    return f"{name}(./{what.removeprefix('./')})" if not what.startswith(("/", "~")) else f"{name}({_rooted(what)})"


def _rooted(path: str) -> str:
    return path if path.startswith("~") else f"/{path}"


def _command(command: ShellCommand) -> str:
    inner = unwrapped(command.words)
    exact = _literal((*command.assignments, *command.words))
    if command.assignments or not inner or hazard(inner) or loss(inner):
        return exact
    program = inner[0].text
    texts = [word.text for word in inner]
    if program in programs().interpreters:
        # `python -m pytest` names what is run as well as `git diff` does.
        return f"{_literal(inner[:3])} *" if texts[1:2] == ["-m"] and len(texts) > 2 else exact
    depth = programs().depths.get(program, 1)
    if depth > 1 and len(texts) > 1 and texts[1] in _ONE_MORE:
        depth += 1
    kept = inner[:1]
    for word in inner[1:depth]:
        if _OPTION_OR_PATH.match(word.text) or word.is_pattern:
            break
        kept = (*kept, word)
    return f"{_literal(kept)} *"


def _literal(words: tuple[Word, ...]) -> str:
    """The words as a rule has to write them, with stars that mean themselves."""
    return " ".join(_star_quoted(word) for word in words)


def _star_quoted(word: Word) -> str:
    shown = command_text((word,)).strip() if word.text.strip() else word.shown
    plain = not shown.startswith("'") and re.search(r"[*$~#{}!]", word.text)
    return f"'{word.text}'" if plain else shown
