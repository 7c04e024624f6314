"""The bounds that a request sets to its change: Scope and Constraints of the form, and "do not touch X" anywhere."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass

from pawl.agent.intents import RequestForm, own_words, phrase_file, request_form
from pawl.checks.change_scope import ChangeScope

LONGEST = 20_000
"""Characters of a request that are searched for bounds."""
_PLACE = r"[A-Za-z0-9_.*@+/-]*[A-Za-z0-9_*/]"
_TOKEN = re.compile(rf"(?<![\w:/.-])(?:\.\.?/)*\.?{_PLACE}")
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


def missing_places(form: RequestForm, is_there: Callable[[str], bool]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The places that the form's Scope names, and those of them that the request is to create."""
    places = tuple(one for one in scope_items(form, is_there).places if "*" not in one)
    lines = [line for line in (form.task, *form.scope, *form.requirements) for line in line.splitlines()]
    made = [line for line in lines if _made().search(line)]
    creates_tests = any(_TESTS.search(line) for line in made)

    def is_made(place: str) -> bool:
        name = place.rstrip("/").rpartition("/")[2]
        stem = re.escape(name.partition(".")[0])
        named = any(name in line or re.search(rf"(?i)(?<!\w){stem}(?!\w)", line) for line in made)
        return named or (creates_tests and _TESTS.search(name.replace("_", " ").replace(".", " ")) is not None)

    return places, tuple(place for place in places if is_made(place))


def _objects(kind: str, words: str, is_there: Callable[[str], bool]) -> tuple[tuple[str, ...], bool]:
    """The places that the sentences of a kind are about, and whether they are about the tests."""
    said = [match[match.lastgroup or 0] for match in _sentences(kind).finditer(words)]
    named = dict.fromkeys(place for text in said for place in _places(text, is_there))
    rest = [functools.reduce(lambda left, place: left.replace(place, ""), named, text) for text in said]
    return tuple(named), any(map(_TESTS.search, rest))


def _places(text: str, is_there: Callable[[str], bool]) -> list[str]:
    """What looks like a file or names one; the word "tests" means the tests, wherever they lie."""
    tokens = (found.removeprefix("./") for found in _TOKEN.findall(text))
    return [one for one in tokens if _FILE.search(one) or (not _TESTS.fullmatch(one) and is_there(one))]


def _inside(place: str, workspace: str) -> str:
    """Relative to the workspace, which is itself the empty text."""
    if place.rstrip("/") in (workspace, "", "."):
        return ""
    return place.removeprefix(f"{workspace}/").rstrip("/")


@functools.cache
def _sentences(kind: str) -> re.Pattern[str]:
    rows = phrase_file()["bounds"]
    item = rf"(?<![A-Za-z0-9_.*@+/,-])(?:{rows['filler']}){{0,5}}[\"'`]?(?:{rows['tests']}|{_PLACE})[\"'`]?"
    what = rf"(?P<what>(?>{item}(?:\s*(?:,|{rows['and']})\s*{item}){{0,12}}))"
    patterns = [one.replace("<what>", what.replace("?P<what>", f"?P<what{at}>")) for at, one in enumerate(rows[kind])]
    return re.compile("|".join(patterns), re.IGNORECASE)


@functools.cache
def _made() -> re.Pattern[str]:
    return re.compile(phrase_file()["bounds"]["made"], re.IGNORECASE)
