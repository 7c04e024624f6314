"""The tasks and bounds of a request: those of its form, and "do not touch X" anywhere in its words."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from pawl.agent.intents import RequestForm, own_words, phrase_file, request_form, with_form
from pawl.checks.change_scope import ChangeScope
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import Task

LONGEST = 20_000
"""Characters of a request that are searched for bounds."""
_PLACE = r"[A-Za-z0-9_.*@+/-]{0,400}[A-Za-z0-9_*/]"
_TOKEN = re.compile(rf"(?<![\w:/.@+*-])(?:\.\.?/){{0,40}}\.?{_PLACE}")
_FILE = re.compile(r"(?:^|/)\.?[\w@+*-][\w.@+*-]*\.[A-Za-z]\w{0,9}$|/|\*|^\.\w")
_TESTS = re.compile(r"(?i)\b(?:unit[- ]?)?(?:tests?|specs?|pruebas?|testes?)\b|тест|测试|テスト")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeItems:
    """The items of a form's Scope."""

    places: tuple[str, ...]
    tests: bool
    """Tests are named in words."""
    unclear: bool
    """Some of it is said in words that name no place, so that nothing can be held against it."""


def scope_items(form: RequestForm, is_there: Callable[[str], bool]) -> ScopeItems:
    places: list[str] = []
    tests = unclear = False
    for item in form.scope:
        found = _places(item, is_there)
        places += found
        if not found:
            tests, unclear = tests or bool(_TESTS.search(item)), unclear or not _TESTS.search(item)
    return ScopeItems(places=tuple(dict.fromkeys(places)), tests=tests, unclear=unclear)


def scope_of(request: str, workspace: str, is_there: Callable[[str], bool]) -> ChangeScope:
    """The bounds of the request; a word names a folder where one of that name `is_there`."""
    words = own_words(request).replace("’", "'")[:LONGEST]
    form = request_form(words)
    allowed: tuple[str, ...] = ()
    tests_allowed = False
    if form is not None:
        items = scope_items(form, is_there)
        allowed, tests_allowed = (() if items.unclear else items.places), items.tests
        words = "\n".join((form.task, *form.requirements, *form.constraints))
    untouched, tests_untouched = _objects("untouched", words, is_there)
    only, only_tests = _objects("only", words, is_there)
    inside = tuple(_inside(one, workspace) for one in (*allowed, *only))
    return ChangeScope(
        allowed=() if "" in inside else inside,
        tests_allowed=tests_allowed or only_tests,
        untouched=tuple(filter(None, (_inside(one, workspace) for one in untouched))),
        tests_untouched=tests_untouched,
    )


def from_form(request: str, workspace: str, is_there: Callable[[str], bool]) -> tuple[Task, ...]:
    """The tasks of a request in the form, all of them; empty when it is not in that form."""
    form = request_form(request)
    if form is None:
        return ()
    named = (_inside(one, workspace) for one in scope_items(form, is_there).places)
    places = tuple(one for one in named if one and "*" not in one)
    creates = tuple(place for place in places if _is_made(place, form))
    return tuple(
        Task(number=number, what=with_form(step, form), paths=places, creates=creates)
        for number, step in enumerate(form.tasks, 1)
    )


def programs_of(request: str) -> tuple[str, ...]:
    """The programs that the form's commands need to be there; one that the request is to write is not among them."""
    form = request_form(request)
    found = () if form is None else (next(iter(command.split()), "") for command in form.commands)
    return tuple(dict.fromkeys(one for one in found if form is not None and not _is_made(one, form)))


def _is_made(place: str, form: RequestForm) -> bool:
    """Whether a line of the form that speaks of something new names the place, or tests where it is one."""
    name = place.rstrip("/").rpartition("/")[2]
    stem = re.compile(rf"(?i)(?<!\w){re.escape(name.partition('.')[0] or name)}(?!\w)")
    text = (form.task, *form.scope, *form.requirements)
    made = [line for part in text for line in part.splitlines() if _made().search(line)]
    is_test = _TESTS.search(re.sub(r"[_.]", " ", name)) is not None
    return any(stem.search(line) or (is_test and _TESTS.search(line)) for line in made)


def _objects(kind: str, words: str, is_there: Callable[[str], bool]) -> tuple[tuple[str, ...], bool]:
    """The places that the sentences of a kind are about, and whether they are about the tests."""
    pattern = _sentences(tuple(row for row, *parts in _rows(kind) if all(part.search(words) for part in parts)))
    said = [match[match.lastgroup or 0] for match in pattern.finditer(words)] if pattern else []
    named = dict.fromkeys(place for text in said for place in _places(text, is_there))
    rest = [functools.reduce(lambda left, place: left.replace(place, ""), named, text) for text in said]
    return tuple(named), any(map(_TESTS.search, rest))


def _places(text: str, is_there: Callable[[str], bool]) -> list[str]:
    """Words that look like a file or name one; the word "tests" means the tests, wherever they lie."""
    tokens = (found.removeprefix("./") for found in _TOKEN.findall(text))
    return [one for one in tokens if _FILE.search(one) or (not _TESTS.fullmatch(one) and is_there(one))]


def _inside(place: str, workspace: str) -> str:
    """Relative to the workspace, which is itself the empty text."""
    if place.rstrip("/") in (workspace, "", "."):
        return ""
    return place.removeprefix(f"{workspace}/").rstrip("/")


@functools.cache
def _rows(kind: str) -> tuple[tuple[str, *tuple[re.Pattern[str], ...]], ...]:
    """Each sentence, and what of it stands around its places: without that in a request it is not worth compiling."""
    rows = phrase_file()["bounds"][kind]
    return tuple((row, *(re.compile(part, re.IGNORECASE) for part in row.split("<what>"))) for row in rows)


@functools.cache
def _sentences(rows: tuple[str, ...]) -> re.Pattern[str] | None:
    words = phrase_file()["bounds"]
    item = rf"(?<![A-Za-z0-9_.*@+/,-])(?:{words['filler']}){{0,5}}[\"'`]?(?:{words['tests']}|{_PLACE})[\"'`]?"
    what = rf"(?P<what>(?>{item}(?:\s*(?:,|{words['and']})\s*{item}){{0,12}}))"
    patterns = [one.replace("<what>", what.replace("?P<what>", f"?P<what{at}>")) for at, one in enumerate(rows)]
    return re.compile("|".join(patterns), re.IGNORECASE) if rows else None


@functools.cache
def _made() -> re.Pattern[str]:
    return re.compile(phrase_file()["bounds"]["made"], re.IGNORECASE)
