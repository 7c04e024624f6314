"""The prompt repository: Markdown files with strict variables, which users and projects may override by file.

The order in which a request's prompts are sent is base, role, project root, mode, stage, reasoning: what differs from
turn to turn comes last, so that a provider's prompt cache holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import resources
from types import MappingProxyType

from pawl.core.errors import PromptError, why
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import Mode, PolicyDecision
from pawl.core.typed import front_matter, near
from pawl.settings.trust import Folder, files_of

VARIABLES = ("project_root", "user_input", "tool_summary", "last_step_outcome")
STABLE = ("base", "project_root", "modes/", "roles/", "detail/", "reasoning/")
"""Prompts that open a request and may only name the project root, which does not change within a run."""
HEADINGS: Mapping[str, str] = MappingProxyType(
    {
        **{f"modes/{mode}": f"# Mode: {mode}" for mode in Mode},
        "reasoning/macro": "# Reasoning: macro",
        "reasoning/micro": "# Reasoning: micro",
        "reasoning/field": "# Reasoning: field",
    }
)
"""First lines that an override keeps, because they are what shows that a request carries the prompt."""

MOST_CHARACTERS = 20_000

_OF_ROLE = re.compile(r"roles/[a-z][a-z0-9_]*")
"""A role of the user's own may bring its own prompt."""
_MARK = re.compile(r"\{\{(?P<name>[^{}\n]*)\}\}|\{\{")


@dataclass(frozen=True, slots=True)
class PromptFault:
    """Something wrong in a prompt file."""

    path: str
    line: int
    what: str

    @property
    def text(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    name: str
    """Its path in the repository without `.md`, such as `stages/act`."""
    text: str
    source: str
    """The file it comes from."""
    purpose: str = ""
    words: int = 0
    """The most words it may have; 0 for no limit of its own."""
    first_line: int = 1
    """Where the text begins in its file."""

    @property
    def variables(self) -> frozenset[str]:
        return frozenset(match["name"].strip() for match in _MARK.finditer(self.text) if match["name"])


class PromptRepository:
    """The prompts of Pawl with the overrides of some directories."""

    def __init__(self, prompts: Mapping[str, Prompt]) -> None:
        self._prompts = dict(sorted(prompts.items()))

    @classmethod
    def load(cls, directories: Sequence[Folder] = (), more: Sequence[Prompt] = ()) -> PromptRepository:
        """Pawl's own prompts; files of the directories replace those of their name, later directories win.

        Whoever calls decides which directories are trusted. Every fault of every file is reported at once.
        """
        prompts, faults = _collect(directories)
        if faults:
            raise PromptError(
                "prompts that cannot be used:\n" + "\n".join(fault.text for fault in faults),
                advice=f"the variables are {', '.join(f'{{{{{name}}}}}' for name in VARIABLES)}",
            )
        return cls({**{one.name: one for one in more}, **prompts})

    def names(self) -> tuple[str, ...]:
        return tuple(self._prompts)

    def get(self, name: str) -> Prompt:
        prompt = self._prompts.get(name)
        if prompt is None:
            raise PromptError(f"there is no prompt {name!r}", advice=near(name, self._prompts) or "see the list")
        return prompt

    def render(self, name: str, variables: Mapping[str, str]) -> str:
        """The text with its variables filled in, once: what a value holds is never read as a variable."""
        prompt = self.get(name)
        unknown = sorted(set(variables) - set(VARIABLES))
        if unknown:
            raise PromptError(f"no prompt has the variables {', '.join(unknown)}", advice=f"use {', '.join(VARIABLES)}")
        for match in _MARK.finditer(prompt.text):
            if match["name"].strip() not in variables:
                line = prompt.first_line + prompt.text.count("\n", 0, match.start())
                fault = PromptFault(prompt.source, line, f"no value for {match.group()}")
                raise PromptError(fault.text, advice="give every variable of the prompt a value")
        return _MARK.sub(lambda match: variables[match["name"].strip()], prompt.text)

    def compose(self, decision: PolicyDecision, variables: Mapping[str, str]) -> tuple[str, ...]:
        """The system parts of a request, stable ones first."""
        return tuple(self.render(name, variables) for name in decision.prompts)

    def check(self) -> list[PromptFault]:
        """Warnings: prompts over their own limit of words."""
        return [
            PromptFault(prompt.source, 1, f"{count} words, and {prompt.words} is the limit that it sets itself")
            for prompt in self._prompts.values()
            if prompt.words and (count := len(prompt.text.split())) > prompt.words
        ]


def check_prompts(directories: Sequence[Folder] = ()) -> list[PromptFault]:
    """Every fault of the prompts, for those who want to see them all rather than be stopped."""
    prompts, faults = _collect(directories)
    return faults + PromptRepository(prompts).check()


def _collect(directories: Sequence[Folder]) -> tuple[dict[str, Prompt], list[PromptFault]]:
    faults: list[PromptFault] = []
    prompts = {}
    for name, text in _built_in():
        prompts[name] = _prompt(name, text, f"prompts/{name}.md", faults)
    known = frozenset(prompts)
    for directory in directories:
        for path, source, read in files_of(directory, ".md"):
            name = path.removesuffix(".md")
            if name not in known and not _OF_ROLE.fullmatch(name):
                faults.append(PromptFault(source, 1, f"there is no prompt {name!r} to override{near(name, known)}"))
            elif (content := _read(read, source, faults)) is not None:
                prompts[name] = _prompt(name, content, source, faults)
    return prompts, faults


def _built_in() -> Iterator[tuple[str, str]]:
    with resources.as_file(resources.files("pawl.agent") / "prompts") as folder:
        for path in sorted(folder.rglob("*.md")):
            yield path.relative_to(folder).with_suffix("").as_posix(), path.read_text("utf-8")


def _read(read: Callable[[], str], source: str, faults: list[PromptFault]) -> str | None:
    try:
        text = read()
    except (OSError, UnicodeDecodeError) as error:
        faults.append(PromptFault(source, 1, f"cannot be read: {why(error)}"))
        return None
    if len(text) > MOST_CHARACTERS:
        faults.append(PromptFault(source, 1, f"{len(text):,} characters, and {MOST_CHARACTERS:,} is the limit"))
        return None
    return text


def _prompt(name: str, content: str, source: str, faults: list[PromptFault]) -> Prompt:
    head, body = front_matter(content)
    for number, (key, value) in enumerate(head.items(), 2):
        if key not in ("purpose", "words") or (key == "words" and not value.isdecimal()):
            faults.append(PromptFault(source, number, f"not a purpose or a number of words: {f'{key}: {value}'!r}"))
    above = content.count("\n") - body.count("\n")
    text = body.strip()
    first_line = 1 + above + body[: len(body) - len(body.lstrip())].count("\n")
    words = head.get("words", "0")
    prompt = Prompt(
        name=name,
        text=text,
        source=source,
        purpose=head.get("purpose", ""),
        words=int(words) if words.isdecimal() else 0,
        first_line=first_line,
    )
    faults += [PromptFault(source, line, what) for line, what in _faults(prompt)]
    return prompt


def _faults(prompt: Prompt) -> Iterator[tuple[int, str]]:
    if not prompt.text:
        yield 1, "it is empty"
    heading = HEADINGS.get(prompt.name)
    if heading is not None and prompt.text.partition("\n")[0] != heading:
        yield prompt.first_line, f"must begin with the line {heading!r}"
    others = {first: name for name, first in HEADINGS.items() if name != prompt.name}
    for number, words in enumerate(map(str.strip, prompt.text.split("\n"))):
        if words in others:
            yield prompt.first_line + number, f"{words!r} is the first line of {others[words]!r}"
    stable = prompt.name.startswith(STABLE)
    for match in _MARK.finditer(prompt.text):
        line = prompt.first_line + prompt.text.count("\n", 0, match.start())
        name = (match["name"] or "").strip()
        if name not in VARIABLES:
            yield line, f"{match.group()} is not a variable{near(name, VARIABLES)}"
        elif stable and name != "project_root":
            yield line, f"{match.group()} changes from turn to turn and may not stand in {prompt.name!r}"
