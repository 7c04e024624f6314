"""Roles: agents described by data files, and what each may use and whom it may send."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from types import MappingProxyType

from pawl.core.errors import PawlError, PolicyViolation, PromptError
from pawl.core.formats import read_toml
from pawl.core.run import RoleName
from pawl.core.typed import near
from pawl.settings.allowances import allowances
from pawl.settings.project_files import Folder, files_of

Validator = Callable[[str, str], object]
"""From the name of a contract and an answer to its value; a `PawlError` when the answer does not fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """Something that a role file says about itself, to be held against it."""

    subject: str
    """`tool`, `delegate` or `answer`."""
    value: str
    allowed: bool

    @property
    def text(self) -> str:
        word = "allowed" if self.allowed else "refused"
        value = self.value if len(self.value) <= 60 else f"{self.value[:60]}…"
        return f"{self.subject} {value!r} should be {word}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    name: str
    description: str
    prompt: str
    """The name of its prompt."""
    tools: frozenset[str]
    delegates: frozenset[str]
    """The roles that it may send."""
    contract: str
    """The schema of its answers; empty for plain text."""
    model: str
    """The slot that the configuration fills with a model, where it names none for the role itself."""
    temperature: float
    context_tokens: int
    """How much it is given to read."""
    examples: tuple[Example, ...] = field(default=(), repr=False)
    source: str = ""
    """The file it comes from."""


def may_use(role: Role, tool: str) -> None:
    """`PolicyViolation` unless the tool is one of the role's."""
    if tool not in role.tools:
        allowed = ", ".join(sorted(role.tools)) or "none"
        raise PolicyViolation(f"the role {role.name!r} may not use {tool!r}", advice=f"its tools are: {allowed}")


def may_delegate(role: Role, to: str) -> None:
    """`PolicyViolation` unless the role may send the other."""
    if "delegate" not in role.tools or to not in role.delegates:
        raise PolicyViolation(
            f"the role {role.name!r} may not delegate to {str(to)!r}",
            advice=f"it may send: {', '.join(sorted(role.delegates)) or 'nobody'}",
        )


def check_examples(role: Role, validate: Validator | None = None) -> tuple[str, ...]:
    """What the role's file says about itself and is not so; answers are held against the contract by `validate`."""
    checks: Mapping[str, Callable[[str], object]] = {
        "tool": lambda tool: may_use(role, tool),
        "delegate": lambda to: may_delegate(role, to),
        "answer": lambda answer: validate(role.contract, answer) if validate else None,
    }
    shown = (example for example in role.examples if example.subject != "answer" or validate)
    return tuple(example.text for example in shown if _passes(checks[example.subject], example) != example.allowed)


def _passes(check: Callable[[str], object], example: Example) -> bool:
    try:
        check(example.value)
    except PawlError:
        return False
    return True


CONTRACTS = (
    "cases",
    "delivery",
    "fix",
    "intent",
    "plan",
    "ranking",
    "review",
    "score",
    "verdict",
    "work",
)


_TEXTS = ("description", "prompt", "contract", "model")
_LISTS = ("tools", "delegates")
_KEYS = (*_TEXTS, *_LISTS, "temperature", "context_tokens", "example")
_OPTIONAL = ("delegates", "contract", "model", "temperature", "context_tokens", "example")
_DEFAULTS: Mapping[str, object] = {"contract": "", "model": "default", "temperature": 0.1, "context_tokens": 60_000}
_HOTTEST = 2.0
_SMALLEST_CONTEXT = 1_000
_NAME = re.compile(r"[a-z][a-z0-9_]*")

Table = Mapping[str, object]


def load_roles(directories: Sequence[Folder] = ()) -> Mapping[str, Role]:
    """The roles that come with Pawl, and those of the directories, of which later ones win.

    A file named like a role of Pawl's replaces it and may only narrow its tools; its delegates are those of the role or
    roles that do not come with Pawl. Any other name is a new role.
    """
    built_in = _BUILT_IN
    if not directories:
        return built_in
    mistakes: list[str] = []
    files: dict[str, tuple[str, Table]] = {}
    for path, source, read in (one for directory in directories for one in files_of(directory, ".toml")):
        if "/" in path:
            continue
        name, table = path.removesuffix(".toml"), _read(read, source, mistakes)
        if not _NAME.fullmatch(name):
            mistakes.append(f"{source}: the name of a role is made of small letters, digits and _, not {name!r}")
        elif table is not None:
            files[name] = (source, table)
    names = frozenset(built_in) | files.keys()
    roles = dict(built_in)
    for name, (source, table) in files.items():
        found = [*_mistakes(table, names), *_widened(built_in.get(name), table, built_in)]
        if not found:
            roles[name] = _role(name, source, table)
            found = list(check_examples(roles[name]))
        mistakes += [f"{source}: {mistake}" for mistake in found]
    _refuse(mistakes)
    return MappingProxyType(roles)


class _BuiltIn(Mapping[str, Role]):
    """The roles that come with Pawl, each read when it is asked for.

    A test holds their files to the same rules as others, which spares every start the time.
    """

    def __init__(self) -> None:
        self._read: dict[str, Role] = {}

    def __getitem__(self, name: str) -> Role:
        if name not in self._read:
            if name not in set(RoleName):
                raise KeyError(name)
            file = resources.files("pawl.agent") / "roles" / f"{name}.toml"
            self._read[name] = _role(name, f"roles/{name}.toml", tomllib.loads(file.read_text("utf-8")))
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return map(str, RoleName)

    def __len__(self) -> int:
        return len(RoleName)


_BUILT_IN = _BuiltIn()


def role_mistakes(name: str, text: str) -> tuple[str, ...]:
    """Every mistake of a role file's text, read as one that comes with Pawl."""
    table = tomllib.loads(text)
    found = _mistakes(table, frozenset(RoleName))
    return tuple(found) or check_examples(_role(name, name, table))


def _read(read: Callable[[], str], source: str, mistakes: list[str]) -> Table | None:
    try:
        return read_toml(read())
    except (OSError, ValueError) as error:
        mistakes.append(f"{source}: {error}")
        return None


def _refuse(mistakes: Sequence[str]) -> None:
    if mistakes:
        raise PromptError(
            "role files that cannot be used:\n" + "\n".join(mistakes),
            advice=f"a role file takes {', '.join(_KEYS)}",
        )


def _mistakes(table: Table, names: frozenset[str]) -> list[str]:
    found = [f"{key}: no such key{near(key, _KEYS)}" for key in table if key not in _KEYS]
    found += [f"{key}: missing" for key in _KEYS if key not in table and key not in _OPTIONAL]
    found += [f"{key}: must be text, not {table[key]!r}" for key in _TEXTS if not isinstance(table.get(key, ""), str)]
    found += _unknown(table, "tools", allowances().tools)
    found += _unknown(table, "delegates", names)
    contract = table.get("contract", "")
    if isinstance(contract, str) and contract and contract not in CONTRACTS:
        found.append(f"contract: no such contract {contract!r}{near(contract, CONTRACTS)}")
    found += _numbers(table)
    if table.get("delegates") and "delegate" not in _strings(table.get("tools")):
        found.append("delegates: without the tool 'delegate' nobody can be sent")
    return found + _example_mistakes(table)


def _numbers(table: Table) -> list[str]:
    found = []
    temperature, context = table.get("temperature", 0.1), table.get("context_tokens", _SMALLEST_CONTEXT)
    if isinstance(temperature, bool) or not isinstance(temperature, int | float) or not 0 <= temperature <= _HOTTEST:
        found.append(f"temperature: must be a number from 0 to {_HOTTEST:g}, not {temperature!r}")
    if type(context) is not int or context < _SMALLEST_CONTEXT:
        found.append(f"context_tokens: must be a whole number from {_SMALLEST_CONTEXT:,}, not {context!r}")
    return found


def _unknown(table: Table, key: str, known: Iterable[str]) -> list[str]:
    given = table.get(key, [])
    if not isinstance(given, list) or not all(isinstance(item, str) for item in given):
        return [f"{key}: must be a list of names, not {given!r}"]
    return [f"{key}: no such name {item!r}{near(item, known)}" for item in given if item not in known]


def _widened(replaced: Role | None, table: Table, built_in: Mapping[str, Role]) -> list[str]:
    if replaced is None:
        return []
    tools = sorted(_strings(table.get("tools")) - replaced.tools)
    delegates = sorted((_strings(table.get("delegates")) & built_in.keys()) - replaced.delegates)
    return [f"tools: the role {replaced.name!r} may not be given {tool!r}" for tool in tools] + [
        f"delegates: the role {replaced.name!r} may not be given {name!r}" for name in delegates
    ]


def _example_mistakes(table: Table) -> list[str]:
    examples = table.get("example", [])
    if not isinstance(examples, list):
        return ["example: must be written [[example]]"]
    return [f"example {number}: {why}" for number, one in enumerate(examples, 1) if (why := _example_mistake(one))]


def _example_mistake(one: object) -> str:
    match one:
        case {"allowed": {"tool": str()} | {"delegate": str()}, **more} if not more:
            return ""
        case {"refused": {"tool": str()} | {"delegate": str()}, **more} if not more:
            return ""
        case {"valid": str(), **more} | {"invalid": str(), **more} if not more:
            return ""
    return "must be allowed or refused = { tool = … } or { delegate = … }, or valid or invalid = an answer"


def _role(name: str, source: str, table: Table) -> Role:
    values = {**_DEFAULTS, **table}
    temperature, context = values["temperature"], values["context_tokens"]
    assert isinstance(temperature, int | float) and isinstance(context, int)
    return Role(
        name=str(name),
        description=str(values["description"]),
        prompt=str(values["prompt"]),
        tools=_strings(values.get("tools")),
        delegates=_strings(values.get("delegates")),
        contract=str(values["contract"]),
        model=str(values["model"]),
        temperature=float(temperature),
        context_tokens=context,
        examples=tuple(_examples(values.get("example", []))),
        source=source,
    )


def _examples(tables: object) -> Iterable[Example]:
    assert isinstance(tables, list)
    for table in tables:
        for word, value in table.items():
            if word in ("valid", "invalid"):
                yield Example(subject="answer", value=value, allowed=word == "valid")
            else:
                for subject, named in value.items():
                    yield Example(subject=subject, value=named, allowed=word == "allowed")


def _strings(value: object) -> frozenset[str]:
    return frozenset(item for item in value if isinstance(item, str)) if isinstance(value, list) else frozenset()
