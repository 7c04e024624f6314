"""The tests that a request demands to pass, read from its words in the languages of `demands.toml`."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pawl.agent.intents import own_words, phrase_file, tests_may_change
from pawl.checks.verdict import Requirements
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import data_table

_SENTENCE = re.compile(r"(?<=[.!?;])\s+|[。！？；]|\n\s*\n|\n(?=\s*(?:[-*•#]|\d+[.)]))")
_CLAUSE = ",，、;："
_FILE = "(?<![A-Za-z])tests(?![A-Za-z])"
"""The word that stands for a file of tests, in every language."""
_PATH = re.compile(r"(?<!\w)[~.]{0,2}/\S+")
"""A folder may be named after tests without any word of them."""
_NEAR = 8
"""Characters between words on tests and the name of the one that they are about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """The tests that must pass in the end, beyond that nothing new may fail."""

    all_tests: bool = False
    files: tuple[str, ...] = ()
    """Files of tests whose tests are all to pass."""
    tests: tuple[str, ...] = ()
    """Names and ids of tests, as they were written."""
    left_out: tuple[str, ...] = ()
    """Tests that are named because they may fail, or change themselves."""
    fixes: bool = False
    """Something is to be fixed, so that what tests expect is right."""
    words: str = ""
    """The request without what is left out."""
    test_first: bool = False
    """A test is to be seen failing without the change."""
    red: bool = False
    """Only tests are to be written, and they are to fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Language:
    """The patterns of one language, as `demands.toml` explains them."""

    tests: re.Pattern[str]
    patterns: tuple[re.Pattern[str], ...]
    before: re.Pattern[str]
    exceptions: re.Pattern[str]
    fails: re.Pattern[str]
    fix: re.Pattern[str]
    outcome: re.Pattern[str]
    """How tests end, well or badly."""


@functools.lru_cache(maxsize=64)
def demanded(request: str) -> Demand:
    left_out, words = _without_left_out(own_words(request).replace("’", "'").replace("`", '"'))
    names = _names()
    all_tests, files = False, dict[str, None]()
    sentences = [" ".join(re.sub(r'["*]', "", one).split()) for one in _SENTENCE.split(words)]
    for sentence, following in zip(sentences, (*sentences[1:], ""), strict=True):
        # A file of tests stands for its tests: "make tests/test_cart.py pass".
        named, plain = names["file"].findall(sentence), names["file"].sub("tests", sentence)
        every = names["all"].search(sentence) is not None
        sides = [sentence.partition(file)[::2] for file in named]
        inside = any(names["in_file"].search(left) or names["after_file"].search(right) for left, right in sides)
        for start, end in _demands(plain, following):
            near = (one.start() - _NEAR <= end and start <= one.end() + _NEAR for one in names["test"].finditer(plain))
            if not every and any(near):
                continue
            if named and (inside or not every):
                files |= dict.fromkeys(named)
            else:
                all_tests = True
    fixes = names["fixes"].search(words) is not None
    tests = tuple(dict.fromkeys(match[0] for match in names["test"].finditer(words)))
    return Demand(
        all_tests=all_tests,
        files=tuple(files),
        tests=tests,
        left_out=left_out,
        fixes=fixes,
        words=words,
        test_first=names["test_first"].search(words) is not None,
        red=names["red"].search(words) is not None,
    )


def requirements(request: str, words: str = "", *, mends: bool = False) -> Requirements:
    """The demands of a request, or of its part in these words, on the checks; `mends` where failing tests are all."""
    demand = demanded(words or request)
    return Requirements(
        all_tests=mends or demand.all_tests,
        tests=demand.tests,
        files=demand.files,
        left_out=demand.left_out,
        named=demand.words,
        fixes=mends or demand.fixes,
        witness=(demand.fixes and not mends) or demand.test_first,
        red=demand.red,
        tests_may_change=tests_may_change(request),
    )


def wishes(request: str) -> tuple[str, ...]:
    """The wishes that prose strings together, each with its verb first; one that passing tests fulfil is none."""
    words = own_words(request).replace("’", "'")
    found = list(_wish().finditer(words))
    ends = (*(one.start() for one in found[1:]), len(words))
    clauses = (words[one.start("wish") : end].strip(" ,.;:!\n") for one, end in zip(found, ends, strict=False))
    return tuple(one for one in clauses if all(start for start, _ in _demands(_names()["file"].sub("tests", one), "")))


def has_further_wish(request: str) -> bool:
    """Whether the words bring in a second wish, of which a test for the first says nothing."""
    words = own_words(request)
    unspaced = _unspaced_wish().findall(words)
    return _names()["further"].search(words) is not None or len(unspaced) > 1 or len(wishes(words)) > 1


def is_about_tests(request: str) -> bool:
    """Whether the request can only be answered with what the tests say now."""
    demand = demanded(request)
    return demand.all_tests or bool(demand.tests or demand.files) or speaks_of_tests(request)


def speaks_of_tests(request: str) -> bool:
    """Whether tests are a matter of the request at all, whatever it wants of them."""
    return any(words.tests.search(own_words(request)) for words in _languages())


_SPECIFICATION = re.compile(r"\bspecs/[\w./-]+")
"""Documents that say what is to be done; "spec" is also a word for a test."""


def leaves_tests(request: str) -> bool:
    """Whether a sentence says that failing tests may stay as they are."""
    names = _names()
    sentences = _SENTENCE.split(own_words(request))
    return any(names["speaks"].search(one) and names["leaves"].search(one) for one in sentences)


@functools.lru_cache(maxsize=64)
def unclear(request: str) -> str:
    """The first sentence that may be about failing tests and is read neither as a demand nor as none; else empty."""
    names, words = _names(), _without_left_out(own_words(request).replace("’", "'").replace("`", '"'))[1]
    sentences = [" ".join(re.sub(r'["*]', "", one).split()) for one in _SENTENCE.split(words)]
    for sentence, following in zip(sentences, (*sentences[1:], ""), strict=True):
        documents = _SPECIFICATION.sub(" ", sentence)
        plain = _PATH.sub(" ", names["test"].sub(" ", names["file"].sub("tests", documents)))
        if any(_demands(plain, following)) or names["leaves"].search(f"{sentence} {following}"):
            continue
        for clause in re.split(f"[{_CLAUSE}]", plain):
            if not names["speaks"].search(clause) or any(one.exceptions.search(clause) for one in _languages()):
                continue
            if clause.strip(" -") == "tests":  # an item of a scope
                continue
            if not names["handles"].search(clause) or any(one.outcome.search(clause) for one in _languages()):
                return sentence
    return ""


def _demands(sentence: str, following: str) -> Iterator[tuple[int, int]]:
    """Where the sentence demands passing tests, or tells of failing ones that it or the next asks to fix."""
    for words in _languages():
        told = f"{sentence} {following}"
        fails = words.fails if words.fix.search(told) and not _names()["leaves"].search(told) else None
        for match in (found for one in (*words.patterns, fails) if one for found in one.finditer(sentence)):
            start = max(sentence.rfind(sign, 0, match.start()) for sign in _CLAUSE) + 1
            ends = [at for sign in _CLAUSE if (at := sentence.find(sign, match.end())) >= 0]
            clause = sentence[start : min(ends, default=len(sentence))]
            if not words.exceptions.search(clause) and not words.before.search(sentence[start : match.start()]):
                yield match.span()


def _without_left_out(text: str) -> tuple[tuple[str, ...], str]:
    names, found = _names(), dict[str, None]()

    def drop(match: re.Match[str]) -> str:
        found.update(dict.fromkeys(names["test"].findall(match[0])))
        return " "

    text = names["may_fail"].sub(drop, names["left_out"].sub(drop, text))
    return tuple(found), text


def _file() -> Mapping[str, Any]:
    return data_table("pawl.agent", "demands.toml")


@functools.cache
def _names() -> Mapping[str, re.Pattern[str]]:
    rows = _file()["names"]
    test, some = rows["test"], r"(?:\W+(?!test_)\w+){0,3}?\W+"
    several = rf"{test}(?:\s*(?:,|\w{{1,3}}|和|、)\s*{test})*"
    made = {
        **{
            name: rows[name]
            for name in (
                *("file", "all", "in_file", "after_file", "fixes", "further", "test_first", "red"),
                *("speaks", "handles", "leaves"),
            )
        },
        "left_out": rf"(?:{rows['left_out']}){some}{several}",
        "may_fail": rf"{several}(?:\W+\w+){{0,3}}?\W+(?:{rows['may_fail']})",
    }
    return {"test": re.compile(test)} | {name: re.compile(text, re.IGNORECASE) for name, text in made.items()}


@functools.cache
def _wish() -> re.Pattern[str]:
    words = phrase_file()["words"]
    return re.compile(rf"{words['strings']}(?P<wish>(?:{words['wish']}|{words['change']})\b\s+[^\s])", re.IGNORECASE)


@functools.cache
def _unspaced_wish() -> re.Pattern[str]:
    """A verb of the languages in which nothing stands between words."""
    return re.compile(phrase_file()["words"]["change_anywhere"])


@functools.cache
def _languages() -> tuple[_Language, ...]:
    def joined(rows: list[str]) -> re.Pattern[str]:
        return re.compile("|".join(f"(?:{row})" for row in rows), re.IGNORECASE)

    def patterns(row: Mapping[str, Any], tests: str) -> tuple[re.Pattern[str], ...]:
        until = f"^(?=.*(?:{row['until']}))(?=.*(?:{row['failing']}|{row['pass']}))(?=.*(?:{tests})).*"
        none = rf"^(?=.*(?:{tests})).*(?:{_file()['names']['none']})(?:\s\w+){{0,2}}?\s?(?:{row['failing']})"
        found = (one.replace("<tests>", tests).replace("<pass>", row["pass"]) for one in row["patterns"])
        return tuple(joined([one]) for one in (*found, until, none))

    return tuple(
        _Language(
            tests=joined([row["tests"]]),
            patterns=patterns(row, f"(?:{row['tests']}|{_FILE})"),
            before=joined(row["before"]),
            exceptions=joined(row["exceptions"]),
            fails=joined([row["fails"]]),
            fix=joined([row["fix"]]),
            outcome=joined([row["pass"], row["failing"]]),
        )
        for row in _file()["language"]
    )
