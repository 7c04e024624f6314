"""Extensions by a user: tools, evaluators, forms of kept answers, phrases, and commands.

A command is a Markdown file whose text is a request. Those of a folder count only where it is trusted.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator

from pawl.agent.intents import Phrase, own_phrases
from pawl.agent.skill_library import Skill, skills_of
from pawl.core.errors import ConfigError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import Report
from pawl.core.text import one_line
from pawl.core.typed import front_matter
from pawl.settings import files as bounded
from pawl.settings.config import Config
from pawl.settings.extensions import extension_settings, loaded, wrong_extension
from pawl.settings.permission_rules import MCP
from pawl.settings.trust import FOLDER, Folder, files_of, may_have_servers, trusted_files

INTENTS = "intents.toml"


def own_evaluator(config: Config) -> Callable[[Report], tuple[int, str]] | None:
    """Scores what came of a run; None where the settings name none."""
    name = extension_settings(config).evaluator if config.tables.extensions else ""
    if not name:
        return None

    def judged(report: Report) -> tuple[int, str]:
        found = loaded("pawl.evaluators", name)
        with found.guarded():
            match found.value(report):
                case (int(score), str(reason)) if 1 <= score <= 5 and score is not True:
                    return score, reason
                case other:
                    what = f"it must give back a score from 1 to 5 and the reason, not {other!r:.100}"
                    raise wrong_extension(found, what)

    return judged


def own_form(config: Config, text: str) -> str | None:
    """The form under which the answer to a question is kept, by an extension; the text itself where there is none.

    None when the answer is not to be kept.
    """
    name = extension_settings(config).answers if config.tables.extensions else ""
    if not name:
        return text
    found = loaded("pawl.answers", name)
    with found.guarded():
        form = found.value(text)
    if form is not None and (not isinstance(form, str) or not form.strip()):
        raise wrong_extension(found, f"it must give back a text or None, not {form!r:.100}")
    return form


def own_phrases_of(config: Config, workspace: str) -> tuple[Phrase, ...]:
    """Ways to ask for something: the user's own, and those of the repository if the user trusts it."""
    file = config.file.parent / INTENTS
    made: tuple[Phrase, ...] = ()
    if file.is_file():
        try:
            made = own_phrases(bounded.read_text(file), str(file))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{str(file)!r} cannot be read: {error}", advice="correct or remove the file") from error
    theirs = f"{FOLDER}/{INTENTS}"
    trusted = trusted_files(config, workspace) if os.path.lexists(os.path.join(workspace, theirs)) else None
    return made + own_phrases(trusted.text(theirs), theirs) if trusted is not None else made


FOLDERS = (".pawl/commands", ".claude/commands")
MOST = 200
LONGEST_HELP = 100
LONGEST = 64 << 10
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_PLACE = re.compile(r"\$(?:ARGUMENTS|[0-9])\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCommand:
    name: str
    description: str
    arguments: str
    """How its arguments are hinted at."""
    text: str
    model: str
    source: str


def own_commands(config: Config, workspace: str) -> tuple[OwnCommand, ...]:
    """Skills, the user's own commands, and those of the workspace if it is trusted, which go before them."""
    found = {one.name: _of_skill(one) for one in skills_of(config, workspace).values() if one.is_typed}
    found |= {one.name: one for one in _served(config, workspace)}
    found |= {one.name: one for one in _read(config.file.parent / "commands", "your settings")}
    trusted = trusted_files(config, workspace)
    if trusted is not None:
        for folder in reversed(FOLDERS):
            found |= {one.name: one for one in _read(trusted.folder(folder), folder)}
    return tuple(found[name] for name in sorted(found))


def _served(config: Config, workspace: str) -> Iterator[OwnCommand]:
    """The prompts of MCP servers; their texts are asked for when they are used."""
    if not may_have_servers(config, workspace):
        return
    from pawl.agent.mcp_pins import agreed

    for server, (_, pin) in agreed(config, workspace).items():
        for one in pin.prompts:
            words = " ".join(f"[{given.get('name')}]" for given in one.get("arguments", ()))
            yield OwnCommand(
                name=f"{MCP}{server}__{one['name']}".lower(),
                description=one_line(str(one.get("description", "")), LONGEST_HELP),
                arguments=words,
                text="",
                model="",
                source=f"the MCP server {server}",
            )


def _of_skill(skill: Skill) -> OwnCommand:
    return OwnCommand(
        name=skill.name,
        description=one_line(skill.description, LONGEST_HELP),
        arguments=skill.says("argument-hint", "[WORDS]"),
        text=skill.read(),
        model=skill.says("model"),
        source=skill.source,
    )


def filled(text: str, words: str) -> str:
    """The request with its arguments: `$ARGUMENTS` for all, `$1` to `$9` for one; without a place, at its end."""
    if _PLACE.search(text) is None:
        return f"{text}\n\n{words}".strip() if words else text.strip()
    each = words.split()

    def value(found: re.Match[str]) -> str:
        name = found[0][1:]
        if name == "ARGUMENTS":
            return words
        at = int(name) - 1
        return each[at] if 0 <= at < len(each) else ""

    return _PLACE.sub(value, text).strip()


def _read(folder: Folder, source: str) -> Iterator[OwnCommand]:
    for path, _, read in itertools.islice((one for one in files_of(folder, ".md") if "/" not in one[0]), MOST):
        name = path.removesuffix(".md").lower()
        try:
            text = read()[:LONGEST]
        except (OSError, UnicodeDecodeError):
            continue
        if _NAME.fullmatch(name):
            yield _command(name, text, source)


def _command(name: str, text: str, source: str) -> OwnCommand:
    head, body = front_matter(text)
    fields = {key: value.strip("\"'") for key, value in head.items()}
    first = next((line.strip("# ").strip() for line in body.splitlines() if line.strip()), "")
    return OwnCommand(
        name=name,
        description=fields.get("description") or first,
        arguments=fields.get("argument-hint", "[WORDS]" if _PLACE.search(body) else ""),
        text=body.strip(),
        model=fields.get("model", ""),
        source=source,
    )
