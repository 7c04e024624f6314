"""The tasks of a specification, as `tasks.md` has them: the form of Spec Kit, with further lines below a task.

## Phase 3: User Story 1
### Tests for User Story 1
> Write these tests FIRST, ensure they FAIL before implementation
- [ ] T010 [P] [US1] Test of the totals in tests/test_cart.py
### Implementation for User Story 1
- [ ] T011 [US1] Sum the prices in src/cart.py (depends on T010)
  - Files: src/cart.py, src/prices.py
  - Proof: tests/test_cart.py
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field, replace

from pawl.code.languages import is_test, languages
from pawl.core.errors import UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import data_table

FORM = "a task is a line such as '- [ ] T001 [P] [US1] Create the model in src/models/user.py'"
_POINT = r"\s*(?:[-*+]|\d+[.)])\s+"
_TASK = re.compile(
    rf"^{_POINT}\[(?P<box>[ xX])\]\s+(?:\*\*)?(?P<id>T\d{{1,6}})\b(?:\*\*)?[.:]?(?:\*\*)?\s*(?P<rest>.*)$"
)
_BOX = re.compile(rf"^{_POINT}\[[ xX~/-]{{0,3}}\]\s*\S")
_TICKED = re.compile(rf"^({_POINT})\[[xX]\]")
_COMMENT = re.compile(r"^[ \t]*<!--.*?(?:-->|\Z)", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"^\s*(?P<fence>`{3,}|~{3,})")
_TAG = re.compile(r"\[(?P<tag>P|US\d+|[A-Za-z][\w -]{0,30})\]\s*")
_HEAD = re.compile(r"^(?P<level>#{2,4})\s+(?P<title>\S(?:.*[^\s#])?)[\s#]*$")
_PHASE = re.compile(r"(?i)^phase\b")
_DETAIL = re.compile(
    r"^\s+[-*]\s+(?:\*\*)?(?P<name>files?|depends on|after|proof|test first|requirements?)(?:\*\*)?:(?:\*\*)?"
    r"\s*(?P<text>.*)$",
    re.IGNORECASE,
)
_AFTER = re.compile(r"(?i)\b(?:depends? on|after|requires|needs)\s+(?P<ids>T\d+(?:\s*(?:,|and|&|-|–|to)\s*T\d+)*)")
_IDS = re.compile(r"T\d+")
_SPAN = re.compile(r"(T\d+)\s*(?:-|–|to)\s*(T\d+)")
_PART = r"(?:[\w.@+-]|\[[\w.-]+\]|\([\w-]+\))++"
"""Of a path; frameworks have folders such as `[id]` and `(group)`."""
_FILE = r"(?:[\w@+-]|\[[\w.-]+\])[\w.@+-]*\.[A-Za-z]\w{0,9}"
_LISTED = re.compile(r"(?=.*[./\\])[\w.@+/\\~-]+")
_CODE = re.compile(r"`([^`]+)`")
_FAILS = re.compile(r"(?i)\b(?:must|should|shall|(?:ensure|see) (?:that )?they|they)\s+fail\b|\bfails? before\b")
_TESTS = re.compile(r"(?i)^tests?\b")
_YES = re.compile(r"(?i)^\s*(?:yes|true|on|y|x)\b")
MOST_IN_RANGE = 200
_REQUIREMENT = re.compile(
    r"\b(?P<kind>FR|NFR|SC)-(?P<first>\d+)\b(?:\s*(?:to|–|-|…|\.\.\.?)\s*(?P=kind)-(?P<last>\d+)\b)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecTask:
    """One task of a specification."""

    id: str
    what: str
    line: int
    """Of the file, from 1."""
    done: bool = False
    beside: bool = False
    """Marked `[P]`: it may run beside others."""
    story: str = ""
    phase: str = ""
    section: str = ""
    group: int = 0
    """Counts phases and their sections; a group begins when the one before is done."""
    files: tuple[str, ...] = ()
    """Those that it writes, as far as it names them."""
    after: tuple[str, ...] = ()
    proof: tuple[str, ...] = ()
    """Tests or commands that show it."""
    test_first: bool = False
    """Its proof fails without it."""
    red: bool = False
    """It writes tests that are to fail until a later task."""
    covers: tuple[str, ...] = ()
    """Requirements of the specification that it names."""

    @property
    def touches(self) -> frozenset[str]:
        return frozenset((*self.files, *(one for one in self.proof if self.test_first and is_test(one))))


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskList:
    """The file as read."""

    text: str
    tasks: tuple[SpecTask, ...]
    unnumbered: tuple[int, ...] = ()
    """Lines with a box and no number."""
    title: str = ""

    @property
    def digest(self) -> str:
        """Of what the tasks say, whichever of them are ticked."""
        plain = "\n".join(_TICKED.sub(r"\1[ ]", line) for line in self.text.splitlines())
        return hashlib.sha256(plain.encode("utf-8", "surrogateescape")).hexdigest()

    def task(self, name: str) -> SpecTask:
        for one in self.tasks:
            if one.id == name.upper():
                return one
        known = ", ".join(one.id for one in self.tasks[:5])
        raise UsageError(f"there is no task {name!r}", advice=f"'pawl spec status' lists them: {known}, …")

    def reopened(self, ids: Collection[str]) -> str:
        """The file with these tasks not ticked."""
        return self._boxed(ids, " ")

    def ticked(self, ids: Collection[str]) -> str:
        """The file with these tasks ticked; every other byte stays."""
        return self._boxed(ids, "x")

    def _boxed(self, ids: Collection[str], box: str) -> str:
        lines = self.text.splitlines(keepends=True)
        for at in (one.line - 1 for one in self.tasks if one.id in ids and one.done is (box == " ")):
            lines[at] = re.sub(r"\[[ xX]\]", f"[{box}]", lines[at], count=1)
        return "".join(lines)


def read_tasks(text: str, where: str = "tasks.md") -> TaskList:
    """`UsageError` where no task can be read, or one is there twice."""
    reader = _Reader()
    for number, line in _said(text):
        reader.take(number, line)
    tasks = tuple(reader.finished())
    if not tasks:
        raise UsageError(f"{where} holds no task that can be read", advice=FORM)
    seen: dict[str, int] = {}
    for one in tasks:
        if one.id in seen:
            raise UsageError(
                f"{where}:{one.line}: {one.id} is already in line {seen[one.id]}", advice="give it another number"
            )
        seen[one.id] = one.line
    for one in tasks:
        if unknown := [name for name in one.after if name not in seen]:
            what = f"{where}:{one.line}: {one.id} depends on {unknown[0]}, which does not exist"
            raise UsageError(what, advice="correct it")
        if odd := [
            path for path in one.files if path.startswith(("/", "~")) or "\\" in path or ".." in path.split("/")
        ]:
            raise UsageError(
                f"{where}:{one.line}: {one.id} names {odd[0]!r}, which is not a path in the workspace",
                advice="write it relative to the workspace, with slashes",
            )
    return TaskList(text=text, tasks=tasks, unnumbered=tuple(reader.unnumbered), title=reader.title)


def _said(text: str) -> Iterator[tuple[int, str]]:
    """The lines with their numbers, without comments and blocks of code: what stands there is no task."""
    plain = _COMMENT.sub(lambda found: "".join(re.findall(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]", found[0])), text)
    fence = ""
    for number, line in enumerate(plain.splitlines(), 1):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark["fence"]
        elif mark and mark["fence"].startswith(fence):
            fence = ""
        elif not fence:
            yield number, line


@dataclass(slots=True)
class _Reader:
    title: str = ""
    unnumbered: list[int] = field(default_factory=list)
    _tasks: list[SpecTask] = field(default_factory=list)
    _phase: str = ""
    _section: str = ""
    _group: int = 0
    _fails: bool = False
    """The text around the tasks says that what they write must fail at first."""
    _first: bool = False
    """The file says somewhere that tests come first: Spec Kit's says it once for all stories."""

    def take(self, number: int, line: str) -> None:
        self._first = self._first or _FAILS.search(line) is not None
        if found := _TASK.match(line):
            self._tasks.append(self._task(number, found))
        elif self._tasks and (detail := _DETAIL.match(line)):
            self._tasks[-1] = _with_detail(self._tasks[-1], detail["name"].lower(), detail["text"].strip())
        elif head := _HEAD.match(line):
            self._head(len(head["level"]), head["title"])
        elif line.startswith("# ") and not self.title:
            self.title = line[2:].strip()
        elif _BOX.match(line) and self._phase:
            self.unnumbered.append(number)
        elif _FAILS.search(line) and not line.lstrip().startswith(("-", "*   ")):
            self._fails = True

    def finished(self) -> Iterator[SpecTask]:
        for one in self._tasks:
            tests = bool(one.files) and all(map(is_test, one.files))
            red = one.red or (self._first and _TESTS.match(one.section) is not None)
            yield replace(one, red=red and tests, files=tuple(dict.fromkeys(one.files)))

    def _head(self, level: int, title: str) -> None:
        self._group += 1
        if level == 2 or _PHASE.match(title):
            self._phase, self._section = title, ""
        else:
            self._section = title
        self._fails = _FAILS.search(title) is not None

    def _task(self, number: int, found: re.Match[str]) -> SpecTask:
        rest, tags, at = found["rest"].strip(), [], 0
        while tag := _TAG.match(rest, at):
            tags.append(tag["tag"])
            at = tag.end()
        rest = rest[at:]
        return SpecTask(
            id=found["id"].upper(),
            what=rest,
            line=number,
            done=found["box"] in "xX",
            beside="P" in tags,
            story=next((tag for tag in tags if tag.startswith("US")), ""),
            phase=self._phase,
            section=self._section,
            group=self._group,
            files=tuple(paths_in(_AFTER.sub("", rest))),
            after=tuple(one for named in _AFTER.finditer(rest) for one in _spans(named["ids"])),
            red=self._fails or _FAILS.search(rest) is not None,
            covers=_requirements(rest),
        )


def _with_detail(task: SpecTask, name: str, text: str) -> SpecTask:
    match name:
        case "file" | "files":
            return replace(task, files=tuple(path for piece in text.split(",") for path in _listed(piece)))
        case "depends on" | "after":
            return replace(task, after=tuple(dict.fromkeys((*task.after, *_spans(text)))))
        case "proof":
            found = _CODE.findall(text) or [text]
            return replace(task, proof=tuple(one.strip() for one in found if one.strip()))
        case "test first":
            return replace(task, test_first=_YES.match(text) is not None)
        case _:
            return replace(task, covers=tuple(dict.fromkeys((*task.covers, *_requirements(text)))))


def _requirements(text: str) -> tuple[str, ...]:
    """The requirements that a text names, those of a range (`FR-001 to FR-004`) each."""
    found: list[str] = []
    for match in _REQUIREMENT.finditer(text):
        first, last = int(match["first"]), int(match["last"] or match["first"])
        width = len(match["first"])
        found += [f"{match['kind']}-{number:0{width}}" for number in range(first, min(last, first + MOST_IN_RANGE) + 1)]
    return tuple(found)


def _listed(piece: str) -> Iterable[str]:
    """A piece of a list of files is one as it stands, or names some among other words."""
    path = piece.strip(" \t`\"'").rstrip(".;")
    is_one = _LISTED.fullmatch(path) and path.lower() != "n/a"
    return [path.removeprefix("./")] if is_one else paths_in(piece)


def paths_in(text: str) -> Iterable[str]:
    """The files and folders that a text names, relative to the workspace; a folder ends with a slash."""
    found = (match[0].removeprefix("./").rstrip(".") for match in _path().finditer(text.replace("`", " ")))
    kept = (one for one in found if not one.startswith(("/", "http")) and ".." not in one.split("/"))
    return dict.fromkeys(one for one in kept if "/" in one or _is_file(one))


@functools.cache
def _names() -> Mapping[str, frozenset[str]]:
    return {name: frozenset(some) for name, some in data_table("pawl.agent.specification", "paths.toml").items()}


@functools.cache
def _path() -> re.Pattern[str]:
    known = "|".join(map(re.escape, sorted(_names()["names"], reverse=True)))
    return re.compile(rf"(?<![\w./:@+)\]-])/?(?:{_PART}/)*+(?:{_FILE}|(?:{known})\b|(?<=[\w)\]]/))(?![\w/])")


def _is_file(name: str) -> bool:
    """Whether a name without a folder is one of a file, not of software (`Node.js`), of an abbreviation or of code."""
    known, extension = _names(), name.rpartition(".")[2].lower()
    extensions = known["extensions"].union(*(one.extensions for one in languages().values()))
    return name in known["names"] or (extension in extensions and name.lower() not in known["products"])


def _spans(text: str) -> Iterator[str]:
    """`T001-T003` is three tasks."""
    rest = text
    for first, last in _SPAN.findall(text):
        low, high = int(first[1:]), int(last[1:])
        yield from (f"T{number:0{len(first) - 1}d}" for number in range(low, min(high, low + 1000) + 1))
        rest = rest.replace(first, "").replace(last, "")
    yield from _IDS.findall(rest)
