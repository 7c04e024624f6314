"""The words of code: identifiers as they are written, and the words that they are made of."""

from __future__ import annotations

import functools
import re
import string
import tomllib
from importlib import resources

from pawl.core.redact import redacted

WORD = re.compile(r"[^\W\d]\w*")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+|\d+")
_LONGEST = 64
"""Longer words are data."""
_SHORTEST_KEY = 20
_SHORTEST_DIGEST = 32
_DIGITS_OF_DIGEST = 6
"""So many digits in one long word without a break are not a name."""
_MOST_REMEMBERED = 200_000
_BREAKS = bytes(sign if chr(sign) in f"{string.ascii_letters}{string.digits}_" else ord(" ") for sign in range(256))
NUMBER = "\0"
"""Stands for a word that is only digits, and is no word; no text has it."""

_TABLE = tomllib.loads((resources.files("pawl.code") / "words.toml").read_text("utf-8"))
COMMON = frozenset(_TABLE["common"].split())
STOP = frozenset(_TABLE["stop"].split())


@functools.lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """A lower-case word without the ending that makes it a plural, a participle or an adverb."""
    if len(word) < 5 or not word.isascii():
        return word[:-1] if len(word) == 4 and word[-1] == "s" and word[-2] not in "su" else word
    for ending, kept in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) + len(kept) >= 3:
            root = word[: len(word) - len(ending)] + kept
            # As in stopping and mapped.
            return root[:-1] if ending in _DOUBLING and len(root) > 3 and _doubled(root) else root
    return word


def _doubled(root: str) -> bool:
    return root[-1] == root[-2] and root[-1] not in "lsz"


_ENDINGS = (
    ("ization", "iz"),
    ("ation", "at"),
    ("ically", "ic"),
    ("ities", "iti"),
    ("ments", "ment"),
    ("sses", "ss"),
    ("ies", "i"),
    ("ing", ""),
    ("ed", ""),
    ("es", ""),
    ("ly", ""),
    ("ss", "ss"),
    ("us", "us"),
    ("s", ""),
    ("e", ""),
    ("y", "i"),
)
_DOUBLING = frozenset({"ing", "ed"})


def parts(word: str) -> list[str]:
    """`getHTTPResponse_code2` as get, http, response, code, 2."""
    if word.islower() and word.isascii() and word.replace("_", "").isalpha():
        return [part for part in word.split("_") if part]
    return [part.lower() for part in _PARTS.findall(word)]


def tokens(word: str) -> tuple[str, ...]:
    """The search terms of an identifier: itself, and the stems of its parts when it has several."""
    if len(word) > _LONGEST or _is_key(word):
        return ()
    found = parts(word)
    whole = word.lower().strip("_")
    if len(found) <= 1:
        return (stem(whole),) if len(whole) > 1 and whole not in COMMON else ()
    kept = [stem(part) for part in found if len(part) > 1 and part not in COMMON and not part.isdigit()]
    return (whole, *kept)


def _is_key(word: str) -> bool:
    """Whether a word is a key or a digest by its looks; nobody looks for one, and the index is to hold none."""
    # Whatever has the shape of a key within one word has a digit.
    if len(word) < _SHORTEST_KEY or word.replace("_", "").isalpha():
        return False
    if len(word) >= _SHORTEST_DIGEST and "_" not in word and sum(map(str.isdigit, word)) >= _DIGITS_OF_DIGEST:
        return True
    return redacted(word) != word


def words_of(text: str) -> list[str]:
    """The words of a text; of one that is ASCII by a faster way, in which they may begin with digits."""
    return text.encode().translate(_BREAKS).decode().split() if text.isascii() else WORD.findall(text)


class Tokens(dict[str, str]):
    """The tokens of every word met so far, joined for the index. A dictionary, because millions are looked up."""

    def __missing__(self, word: str) -> str:
        bare = word.lstrip(string.digits)
        if not bare:
            return NUMBER
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        joined = self[word] = " ".join(tokens(bare))
        return joined

    def of(self, text: str) -> str:
        joined = " ".join(map(self.__getitem__, words_of(text)))
        if NUMBER not in joined:
            return joined
        joined = joined.replace(f" {NUMBER}", "")
        return "" if joined == NUMBER else joined.removeprefix(f"{NUMBER} ")
