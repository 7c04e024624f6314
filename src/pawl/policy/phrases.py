"""What the words of an answer give away: a request for files, a claim to be done, a promise of a call.

Each is looked for sentence by sentence in prose, without code and quotations. A false alarm costs a request and
confuses the model, so that doubt counts as innocence.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from pawl.policy.allowances import Kind

TAIL_SENTENCES = 2
"""A promise counts when it is the last thing said."""
LONGEST = 20_000
"""Characters at the end of an answer that are looked at."""

_CODE = re.compile(r"^ {0,3}(```+|~~~+)[^\n]*\n.*?(?:^ {0,3}\1[^\n]*$|\Z)", re.DOTALL | re.MULTILINE)
_QUOTED = re.compile(r"`[^`\n]{0,400}`|\"[^\"\n]{0,400}\"|“[^”\n]{0,400}”|^>[^\n]*$", re.MULTILINE)
_BREAK = re.compile(r"(?<=[.!?:])\s+|\n+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrases:
    """The patterns of one fault."""

    patterns: re.Pattern[str]
    exceptions: re.Pattern[str]
    admissions: re.Pattern[str]
    verbs: Mapping[Kind, re.Pattern[str]]


def asks_for_files(text: str) -> bool:
    """It asks the user for files or diffs, or says that it cannot see them."""
    return any(_said(_phrases()["asks_for_files"], sentence) for sentence in sentences(text))


def claims_done(text: str) -> bool:
    """It says that the work is finished, and nowhere that something is open."""
    phrases, said = _phrases()["claims_done"], sentences(text)
    claimed = any(_said(phrases, sentence) for sentence in said)
    return claimed and not any(phrases.admissions.search(sentence) for sentence in said)


def promises(text: str) -> frozenset[Kind]:
    """The kinds of call that the end of the text announces without a condition."""
    phrases, tail = _phrases()["promised_call"], sentences(text)[-TAIL_SENTENCES:]
    if any(phrases.exceptions.search(sentence) for sentence in tail):
        return frozenset()
    verbs = [match["verb"] for sentence in tail if (match := phrases.patterns.search(sentence))]
    kinds = {kind for kind, pattern in phrases.verbs.items() if any(pattern.fullmatch(verb) for verb in verbs)}
    # An answer that ends with code shows what it announced to look at.
    shown = text.rstrip().endswith(("```", "~~~"))
    return frozenset(kinds - {Kind.READS} if shown else kinds)


def sentences(text: str) -> list[str]:
    """The sentences of the prose, with plain apostrophes."""
    prose = _QUOTED.sub(" it ", _CODE.sub("\n", text[-LONGEST:].replace("’", "'")))
    stripped = (part.strip().lstrip("-*#•> ").strip("*_ ") for part in _BREAK.split(prose))
    return [part for part in stripped if part]


def examples() -> Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """For each fault, texts that have it and texts that do not."""
    file = _file()
    return {name: (tuple(file[name]["faults"]), tuple(file[name]["innocent"])) for name in file if name != "words"}


def _said(phrases: Phrases, sentence: str) -> bool:
    return phrases.patterns.search(sentence) is not None and phrases.exceptions.search(sentence) is None


def _file() -> dict[str, Any]:
    return tomllib.loads((resources.files("pawl.policy") / "phrases.toml").read_text("utf-8"))


@functools.cache
def _phrases() -> Mapping[str, Phrases]:
    file = _file()
    thing = file.pop("words")["thing"]
    return {
        name: Phrases(
            patterns=_any(row["patterns"], thing),
            exceptions=_any(row["exceptions"], thing),
            admissions=_any(row.get("admissions", ()), thing),
            verbs={Kind(kind): _verb(stems) for kind, stems in row.get("verbs", {}).items()},
        )
        for name, row in file.items()
    }


def _any(patterns: Sequence[str], thing: str) -> re.Pattern[str]:
    """No pattern at all matches nothing."""
    joined = "|".join(pattern.replace("<thing>", thing) for pattern in patterns)
    return re.compile(joined or r"(?!)", re.IGNORECASE)


def _verb(stems: Sequence[str]) -> re.Pattern[str]:
    return re.compile(f"(?:{'|'.join(stems)})(?:e|ing|ning|ting)?", re.IGNORECASE)
