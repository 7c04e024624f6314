"""Roles: agents described by data files, and what each may use and whom it may send."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, fields
from importlib import resources
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

from pawl.core.errors import PawlError, PolicyViolation, PromptError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import RoleName
from pawl.core.typed import AtLeast, AtMost, Reader, near, read_toml
from pawl.settings.permission_rules import allowances
from pawl.settings.trust import Folder, files_of

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
class RoleFile:
    """A role as its file declares it."""

    description: str
    prompt: str
    """The name of its prompt."""
    tools: frozenset[str]
    delegates: frozenset[str] = frozenset()
    """The roles that it may send."""
    most: Mapping[str, int] = field(default_factory=dict)
    """How often it may send some of them."""
    contract: str = ""
    """The schema of its answers; empty for plain text."""
    model: str = "default"
    """The slot that the configuration fills with a model, where it names none for the role itself."""
    temperature: Annotated[float, AtLeast(0), AtMost(2)] = 0.1
    context_tokens: Annotated[int, AtLeast(1_000)] = 60_000
    """How much it is given to read."""
    example: tuple[Mapping[str, object], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Role(RoleFile):
    name: str
    source: str
    """The file it comes from."""
    own: frozenset[str] | None = None
    """Of the tools of the user's own, those that it has; None for each whose kind it has a tool of."""
    turns: int = 0
    """The most that it has when it is sent; 0 for its share."""
    skills: tuple[str, ...] = ()
    """Whose texts it is given as it begins."""

    @property
    def examples(self) -> tuple[Example, ...]:
        return tuple(_examples(self.example))


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
    """Mistakes in a role's file; answers are held against the contract by `validate`."""
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
    "tasks",
    "verdict",
    "work",
)


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
            mistakes.append(f"{source}: the name of a role must be lowercase letters, digits and _, not {name!r}")
        elif table is not None:
            files[name] = (source, table)
    names = frozenset(built_in) | files.keys()
    roles = dict(built_in)
    for name, (source, table) in files.items():
        role, found = _role(name, source, table, names)
        if role is not None:
            found += _widened(built_in.get(name), role, built_in) or check_examples(role)
            roles[name] = role
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
            role, _ = _role(name, f"roles/{name}.toml", tomllib.loads(file.read_text("utf-8")), frozenset(RoleName))
            assert role is not None
            self._read[name] = role
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return map(str, RoleName)

    def __len__(self) -> int:
        return len(RoleName)


_BUILT_IN = _BuiltIn()


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
            advice=f"a role file takes {', '.join(one.name for one in fields(RoleFile))}",
        )


class _FileReader(Reader):
    words: ClassVar[Mapping[object, str]] = {**Reader.words, str: "text"}
    joint, whole = ": ", "the file"
    unknown, missing, there_are = "no such key", "missing", "the keys are"


def _role(name: str, source: str, table: Table, names: frozenset[str]) -> tuple[Role | None, list[str]]:
    """The role, or every mistake of its file."""
    reader = _FileReader()
    file = reader.table(RoleFile, table, "")
    found = reader.mistakes
    tools, delegates = (_strings(table.get(key)) for key in ("tools", "delegates"))
    for key, given, known in (("tools", tools, frozenset(allowances().tools)), ("delegates", delegates, names)):
        found += [f"{key}: no such name {one!r}{near(one, known)}" for one in sorted(given - known)]
    contract = table.get("contract")
    if isinstance(contract, str) and contract and contract not in CONTRACTS:
        found.append(f"contract: no such contract {contract!r}{near(contract, CONTRACTS)}")
    if delegates and "delegate" not in tools:
        found.append("delegates: without the tool 'delegate' nobody can be sent")
    examples = table.get("example")
    for number, one in enumerate(examples if isinstance(examples, list) else (), 1):
        found += [f"example {number}: {why}"] if (why := _example_mistake(one)) else []
    if file is None or found:
        return None, found
    return Role(name=str(name), source=source, **{one.name: getattr(file, one.name) for one in fields(file)}), []


def _widened(replaced: Role | None, role: Role, built_in: Mapping[str, Role]) -> tuple[str, ...]:
    if replaced is None:
        return ()
    given = (
        ("tools", role.tools - replaced.tools),
        ("delegates", (role.delegates & built_in.keys()) - replaced.delegates),
    )
    return tuple(
        f"{key}: the role {role.name!r} may not be given {one!r}" for key, more in given for one in sorted(more)
    )


def _example_mistake(one: object) -> str:
    match one:
        case {"allowed": {"tool": str()} | {"delegate": str()}, **more} if not more:
            return ""
        case {"refused": {"tool": str()} | {"delegate": str()}, **more} if not more:
            return ""
        case {"valid": str(), **more} | {"invalid": str(), **more} if not more:
            return ""
    return "must be allowed or refused = { tool = … } or { delegate = … }, or valid or invalid = an answer"


def _examples(tables: Sequence[Mapping[str, Any]]) -> Iterator[Example]:
    for table in tables:
        for word, value in table.items():
            if word in ("valid", "invalid"):
                yield Example(subject="answer", value=value, allowed=word == "valid")
            else:
                for subject, named in value.items():
                    yield Example(subject=subject, value=named, allowed=word == "allowed")


def _strings(value: object) -> frozenset[str]:
    return frozenset(item for item in value if isinstance(item, str)) if isinstance(value, list) else frozenset()
