"""A request read without a model: what it asks for, its form, the files that it names, and its tasks."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pawl.core.errors import ConfigError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import Intent, Task
from pawl.core.typed import Unreadable, data_table, read_toml

FIELDS = ("task", "scope", "requirements", "constraints", "verification")

_HEAD = re.compile(
    r"^[ \t]{0,3}(?:#{1,6}[ \t]*|[-*][ \t]+)?(?:\*\*|__)?(?P<name>" + "|".join(FIELDS) + r")(?:\*\*|__)?[ \t]*:"
    r"(?:\*\*|__)?[ \t]*(?P<rest>.*)$",
    re.IGNORECASE,
)
_HEADING = re.compile(
    r"^[ \t]{0,3}#{1,6}[ \t]*(?P<name>" + "|".join(FIELDS) + r")[ \t]*$",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^[ \t]*(?:[-*•]|\d+[.)])[ \t]+(?P<text>.+)$")
_QUOTED = re.compile(r"`[^`]+`")
_NUMBERED = re.compile(r"^[ \t]*\d+[.)][ \t]+(?P<text>.+)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestForm:
    task: str
    scope: tuple[str, ...] = ()
    """Files or folders that may change; empty where none are named."""
    requirements: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    verification: tuple[str, ...] = ()
    """Commands or checks that decide."""
    commands: tuple[str, ...] = ()
    """The commands among them; what is no command is left to the model."""

    @property
    def tasks(self) -> tuple[str, ...]:
        """The numbered steps of the task where it has some, else the task as one."""
        steps = [match["text"].strip() for line in self.task.splitlines() if (match := _NUMBERED.match(line))]
        return tuple(steps) or (self.task,)


def request_form(text: str) -> RequestForm | None:
    """The request as its form says; None when it is not in that form: it needs a task and one other field."""
    parts: dict[str, list[str]] = {}
    current = ""
    for line in text.splitlines():
        match = _HEAD.match(line) or _HEADING.match(line)
        if match is not None:
            current = match["name"].lower()
            if current in parts:
                return None
            parts[current] = [rest] if (rest := match.groupdict().get("rest", "").strip()) else []
        elif current:
            parts[current].append(line)
        elif line.strip():
            return None
    task = "\n".join(parts.get("task", ())).strip()
    if not task or len(parts) < 2:
        return None
    checks = _items(parts.get("verification", []))
    return RequestForm(
        task=task,
        scope=tuple(path for item in _items(parts.get("scope", [])) for path in _paths(item)),
        requirements=_items(parts.get("requirements", [])),
        constraints=_items(parts.get("constraints", [])),
        verification=tuple(item.strip("`") for item in checks),
        commands=tuple(item.strip("`") for item in checks if _QUOTED.fullmatch(item) or is_command(item)),
    )


def _items(lines: list[str]) -> tuple[str, ...]:
    """Each bullet with the lines that go on with it; a text without bullets is one item a line."""
    items: list[str] = []
    has_bullets = any(_BULLET.match(line) for line in lines)
    for line in lines:
        match = _BULLET.match(line)
        if match is not None:
            items.append(match["text"].strip())
        elif has_bullets and items and line.strip():
            items[-1] += f" {line.strip()}"
        elif line.strip():
            items.append(line.strip())
    return tuple(items)


def _paths(item: str) -> list[str]:
    """`src/a.py, src/b.py` names two files."""
    return [part.strip().strip("`\"'") for part in re.split(r",|\band\b", item) if part.strip().strip("`\"'")]


MOST_NAMED = 12
_PATH = re.compile(r"(?<![\w./:@-])(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,9}\b")


def mentioned(text: str) -> Iterator[str]:
    """The paths of files in the user's own words, each once."""
    found: dict[str, None] = {}
    for match in _PATH.finditer(text):
        if len(found) < MOST_NAMED:
            found.setdefault(match[0].removeprefix("@").removeprefix("./").rstrip("."))
    yield from found


_ATTACHED = re.compile(r"(?:^|(?<=\s))@(?P<path>[^\s@:#,;!?()]*[\w+/-])(?:[:#]L?(?P<start>\d+)(?:-L?(?P<end>\d+))?)?")


def attached(text: str) -> Iterator[tuple[str, int, int | None]]:
    """The files that are attached with `@path`, `@path:10` or `@path:10-20`, with the first and the last line."""
    for match in _ATTACHED.finditer(text):
        start, end = match["start"], match["end"] or match["start"]
        yield match["path"].removeprefix("./"), int(start or 1), int(end) if end else None


LONGEST = 400
"""Characters of a request that phrases are held against; a longer one needs a reader."""

_OWN = (Intent.READ, Intent.EDIT, Intent.FIX, Intent.RUN, Intent.UNDO, Intent.PROFILE)
_OPTIONS = re.compile(r"[a-z][\w.-]*(?: [^\s,]+)* --?[A-Za-z][\w-]*(?:[ =][^\s,]+)*$")
_END = re.compile(r"(?<=[^\s./])[\s.!?。！？؟]+$")
_ASKS = ("?", "？", "؟")


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentGuess:
    """A guess at the request. `command` is `tests`, `lint`, `types`, `main`, or a command line as it was said."""

    intent: Intent
    command: str = ""
    summary: str = ""
    unsaid: bool = False
    """The words do not tell whether anything is to change: an answer may be all that is wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase:
    """A way to say something."""

    intent: Intent
    command: str
    pattern: re.Pattern[str]


def understood(request: str, own: Sequence[Phrase] = ()) -> IntentGuess | None:
    """The obvious intent of a request; None where its words do not tell. The user's own phrases go first."""
    request = own_words(request)
    if request_form(request) is not None:
        return IntentGuess(intent=Intent.EDIT)
    phrases = _Phrases(own)
    plain = _plain(request, phrases)
    if len(plain) > LONGEST:
        return None
    for phrase in phrases:
        match = phrase.pattern.fullmatch(plain)
        if match is not None:
            named = match.groupdict().get("named") or ""
            return IntentGuess(intent=phrase.intent, command=_command(phrase.command, named))
    return None


def own_phrases(text: str, source: str) -> tuple[Phrase, ...]:
    """The phrases of a file of the user's. One that does not keep to its own examples is not used."""
    try:
        table = read_toml(text)
    except Unreadable as error:
        raise ConfigError(f"{source!r} is not TOML: {error}", advice="correct that line") from error
    rows, mistakes, made = table.get("intent", []), [f"{key!r} is not read" for key in table if key != "intent"], []
    for number, row in enumerate(rows if isinstance(rows, list) else [rows], 1):
        why = _mistake(row)
        if not why:
            phrase = _phrase(row)
            made.append(phrase)
            why = _unlike_its_examples(row, phrase)
        mistakes += [f"intent {number}: {why}"] * bool(why)
    if mistakes:
        raise ConfigError(
            f"{source!r}: " + "; ".join(mistakes),
            advice="an [[intent]] takes name, patterns, examples, others, and for 'run' a command: docs/extending.md",
        )
    return tuple(made)


def _mistake(row: object) -> str:
    if not isinstance(row, dict):
        return "must be written [[intent]]"
    unknown = sorted(set(row) - {"name", "command", "patterns", "examples", "others"})
    if unknown:
        return f"{unknown[0]!r} is not one of its fields"
    if row.get("name") not in _OWN:
        return f"name must be one of {', '.join(_OWN)}, not {row.get('name')!r:.80}"
    for key, needed in (("patterns", True), ("examples", True), ("others", False)):
        value = row.get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value) or (needed and not value):
            return f"{key} must be a list of texts, not {value!r:.80}"
    command = row.get("command", "")
    if not isinstance(command, str) or bool(command.strip()) != (row["name"] == Intent.RUN):
        return f"only 'run' has a command, and needs one; here it is {command!r:.80}"
    try:
        _phrase(row)
    except (re.error, OverflowError) as error:
        return f"a pattern cannot be read: {error}"
    return ""


def _unlike_its_examples(row: Mapping[str, Any], phrase: Phrase) -> str:
    def fits(text: str) -> bool:
        return phrase.pattern.fullmatch(_plain(text, (phrase,))) is not None

    wrong = [f"does not fit its example {one!r}" for one in row["examples"] if not fits(one)]
    wrong += [f"fits {one!r}, which it should not" for one in row.get("others", []) if fits(one)]
    return "; ".join(wrong)


def is_command(line: str) -> bool:
    """Whether a line of a request is a command rather than a sentence, by its first word or its options."""
    words = phrase_file()["words"]
    first = next(iter(line.split()), "")
    known = first.startswith("./") or first.rpartition("/")[2] in words["programs"] or _OPTIONS.match(line) is not None
    return known and not re.match(words["sentences"], line.strip())


def own_words(request: str) -> str:
    """The request without what was piped to it: that is material, and decides nothing."""
    return request.partition("\n\n<stdin>\n")[0]


def tests_may_change(request: str) -> bool:
    """Whether the request itself asks for tests to be removed or changed."""
    patterns, exceptions = _test_words()
    text = own_words(request).lower().replace("’", "'")
    return patterns.search(text) is not None and exceptions.search(text) is None


def examples() -> Sequence[tuple[Intent, str]]:
    """One way to say each thing that is understood without a model."""
    return [(Intent(row["name"]), row["examples"][0]) for row in phrase_file()["intent"]]


def is_question(request: str) -> bool:
    """Whether an answer in words is all that it asks for; a wish is none, though it ends like a question."""
    text, words = own_words(request).rstrip(), phrase_file()["words"]
    wish = rf"\b(?:{words['wish']}|{words['change']})\b|{words['change_anywhere']}|{words['wants']}"
    return text.endswith(_ASKS) and re.search(wish, text, re.IGNORECASE) is None


def _plain(request: str, phrases: Iterable[Phrase]) -> str:
    """In one line, without what is only polite; a question keeps its mark."""
    text = " ".join(request.replace("’", "'").split())
    asks = text.endswith(_ASKS)
    text = _END.sub("", text)
    text = re.sub(rf"(?i)^(?:{phrase_file()['words']['polite']}[, ]+)+", "", text)
    text = re.sub(r"(?i)[, ]+(?:please|pls|thanks|thank you)$", "", text)
    return f"{text}?" if asks and not _is_known(text, phrases) else text


def _is_known(text: str, phrases: Iterable[Phrase]) -> bool:
    """Whether the words alone fit something other than a question."""
    return any(phrase.intent is not Intent.READ and phrase.pattern.fullmatch(text) for phrase in phrases)


def _command(kind: str, named: str) -> str:
    if kind != "file":
        return named if kind == "named" else kind
    return command_of(named)


def command_of(path: str) -> str:
    """The command that runs a file, by its ending."""
    program = {"py": "python3", "sh": "sh", "rb": "ruby"}.get(path.rpartition(".")[2], "node")
    return f"{program} {path}"


def phrase_file() -> Mapping[str, Any]:
    """The contents of `intents.toml`."""
    return data_table("pawl.agent", "intents.toml")


@dataclass(frozen=True, slots=True)
class _Phrases:
    """The user's own and then Pawl's, each compiled when those before it did not fit."""

    own: Sequence[Phrase]

    def __iter__(self) -> Iterator[Phrase]:
        yield from self.own
        yield from map(_own_phrase, range(len(phrase_file()["intent"])))


@functools.cache
def _own_phrase(number: int) -> Phrase:
    return _phrase(phrase_file()["intent"][number])


def _phrase(row: Mapping[str, Any]) -> Phrase:
    pattern = "|".join(row["patterns"])
    for name in ("file", "change", "change_anywhere"):
        pattern = pattern.replace(f"<{name}>", phrase_file()["words"][name])
    return Phrase(
        intent=Intent(row["name"]), command=row.get("command", ""), pattern=re.compile(pattern, re.IGNORECASE)
    )


@functools.cache
def _test_words() -> tuple[re.Pattern[str], re.Pattern[str]]:
    row = phrase_file()["tests_may_change"]
    return re.compile("|".join(row["patterns"])), re.compile("|".join(row["exceptions"]))


LONG = 600
"""Characters of a request that may hold more than one wish."""
MANY_PARTS = 5
"""One talk does as many parts as this; a longer list is worth a plan."""
_FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


_PART = re.compile(
    r"^[ \t]*(?:(?:(?:step|part|schritt|teil)[ \t]*)?\(?\d+[.):]|\(?[a-z]\)|[ivx]+[.)]|[-*•])[ \t]+(?P<text>\S.*)$",
    re.MULTILINE | re.IGNORECASE,
)
_MARK = re.compile(r"^[ \t]*[-*•][ \t]+", re.MULTILINE)
_INLINE = re.compile(r"(?:^|(?<=[\s;,:]))\(?(?P<number>\d)[.)][ \t]+")
_IN_ORDER = re.compile(r"^(?:first(?:ly)?|zuerst|d'abord|primero)\b", re.IGNORECASE)


def listed_parts(request: str) -> tuple[str, ...]:
    """The parts that the request lists: by numbers or else by bullets, in one line, or as "first …. Then …." does."""
    numbered = [match["text"].strip() for line in request.splitlines() if (match := _NUMBERED.match(line))]
    parts = numbered or [match["text"].strip() for match in _PART.finditer(request)]
    if len(parts) > 1:
        return tuple(parts)
    inline = list(_INLINE.finditer(request))
    if inline[1:] and [int(one["number"]) for one in inline] == list(range(1, len(inline) + 1)):
        ends = (*(one.start() for one in inline[1:]), len(request))
        return tuple(request[one.end() : end].strip(" ;,\n") for one, end in zip(inline, ends, strict=True))
    if _IN_ORDER.match(request):
        parts = [one for one in re.split(r"(?<=[.;!])\s+", request.strip()) if one]
    return tuple(parts)


def is_large(request: str) -> bool:
    """Whether a planner should cut the request into tasks; most are one."""
    # Boxes to tick and code are the form of an issue, not its wishes.
    return sum(not part.startswith("[") for part in listed_parts(_FENCED.sub("", request))) > MANY_PARTS


def in_order(request: str) -> bool:
    """Whether the request gives its parts an order: by numbers or letters, or as "first …. Then …." does."""
    return len(listed_parts(_MARK.sub("", _FENCED.sub("", request)))) > 1


def as_one(request: str) -> tuple[Task, ...]:
    return (Task(number=1, what=request),)


def from_plan(
    request: str, plan: Sequence[Mapping[str, Any]], order: Callable[[Iterable[str]], tuple[str, ...]]
) -> tuple[Task, ...]:
    """One task for each file of a plan, imported files first. Where some depend on others, or the request numbers its
    parts, the plan's own order holds, and what comes after another file is a task of its own."""
    numbered, bound = in_order(request), any(change["depends_on"] for change in plan)
    if not numbered and not bound:
        paths = dict.fromkeys(str(change["path"]) for change in plan)
        place = {path: number for number, path in enumerate(dict.fromkeys((*order(paths), *paths)))}
        plan = sorted(plan, key=lambda change: place[str(change["path"])])
    parts: list[list[Mapping[str, Any]]] = []
    of: dict[int, int] = {}
    for change in plan:
        needed = max((of[one] for one in change["depends_on"]), default=-1)
        needed = len(parts) - 1 if numbered and not bound else needed
        same = [at for at, part in enumerate(parts) if part[0]["path"] == change["path"] and at >= needed]
        if not same:
            parts.append([])
        of[change["id"]] = same[0] if same else len(parts) - 1
        parts[of[change["id"]]].append(change)
    return tuple(
        Task(
            number=number,
            what="\n".join(str(change["what"]) for change in part),
            paths=(part[0]["path"],),
            creates=(part[0]["path"],) if any(change["action"] == "create" for change in part) else (),
        )
        for number, part in enumerate(parts, 1)
    ) or as_one(request)


def task_text(task: Task, request: str, count: int) -> str:
    """The request for one task of several; a single task is the request itself."""
    if count == 1:
        return task.what
    files = f"\nFiles: {', '.join(task.paths)}" if task.paths else ""
    return f"Task {task.number} of {count}: {task.what}{files}\n\nIt is part of this request:\n{request}"


def verification_of(request: str) -> tuple[str, ...]:
    """The commands that a request in the form names to decide."""
    form = request_form(request)
    return () if form is None else form.commands


def with_form(step: str, form: RequestForm) -> str:
    """One step of the form's task, with the rest of the form."""
    parts = [step]
    for head, items in (
        ("Scope", form.scope),
        ("Requirements", form.requirements),
        ("Constraints", form.constraints),
        ("Verification", form.verification),
    ):
        if items:
            parts.append(f"{head}:\n" + "\n".join(f"- {item}" for item in items))
    return "\n\n".join(parts)
