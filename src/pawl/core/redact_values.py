"""What a value looks like: made by a machine, standing for something else, or words that a person wrote."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache

SHORTEST = 4
"""What is shorter is no secret worth hiding, and too often a word of a program."""

_WINDOW = 128
_LONGEST_PLACEHOLDER = 64
_RANDOM_LENGTH = 16
_RANDOM_BITS = 3.0
_CAMEL_AVERAGE = 3.5

_WORDS_OF_PLACEHOLDERS = """
    a access account and any api app argument arguments auth bad bar base basic baz bearer bool boolean bytes change
    changeme char client credential credentials database db default demo dummy empty enter env environment example
    fake false field flag flags foo for from function get goes here hidden id in input insert int invalid is it key
    label list login me missing mock must my name new nil no none not null number object of old omitted option
    optional options or our parameter pass passphrase passwd password passwords pem placeholder please private prompt
    pwd random redacted replace required sample secret secrets see self set some something str string sub super test
    testing text the this to todo token tokens true type undefined unknown unset use user username value variable void
    with wrong x xx xxx you your
"""
_PLACEHOLDERS = frozenset(_WORDS_OF_PLACEHOLDERS.split())


_REFERENCE = r"""
    \$?\{\{?[^{}\n]{0,200}(?:\}\}?|\Z) | \$\([^()\n]{0,200}\) | <[^<>\n]{1,200}>
    | %\(\w{1,60}\)s | %[sdr] | \$[A-Za-z_]\w{0,60}
"""


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Made when it is first needed: most texts need few of the patterns."""
    return re.compile(pattern, re.VERBOSE | re.DOTALL)


def without_references(value: str) -> str:
    """The value less what is filled in later: `${NAME}`, `{name}`, `<name>`, `%s`, `$NAME`."""
    return compiled(_REFERENCE).sub("", value) if any(sign in value for sign in "{<%$") else value


def is_placeholder(value: str) -> bool:
    """Stands for a secret and is none: `changeme`, `your-api-key`, `****`, `DB_PASSWORD`."""
    head = value[:_WINDOW]
    if len(set(head)) <= 2 or compiled(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|\#[0-9A-Fa-f]{3,8}").fullmatch(head):
        return True
    return len(value) <= _LONGEST_PLACEHOLDER and all(word.lower() in _PLACEHOLDERS for word in _words(value))


def is_label(value: str) -> bool:
    """Words for a person to read, such as `Enter your password`."""
    if " " not in value.strip():
        return False
    return any(word.lower() in _PLACEHOLDERS for word in _words(value)) and not is_mixed(value)


def is_address(value: str) -> bool:
    """A place where something is, not the thing."""
    return value.startswith(("/", "./", "../", "~", "http://", "https://", "file:", "arn:"))


def is_mixed(value: str) -> bool:
    """Letters, digits and signs as nobody writes words: `c4nary-Zq8`, but not `sha256_of_token2`."""
    return any(not _is_word(part) for part in compiled(r"[^A-Za-z0-9]+").split(value[:_WINDOW]) if part)


def is_random(value: str) -> bool:
    """Long, mixed and without a pattern: what a machine makes."""
    window = value[:_WINDOW]
    if len(window) < _RANDOM_LENGTH or " " in window or is_address(window):
        return False
    return is_mixed(window) and entropy(window) >= _RANDOM_BITS


def entropy(text: str) -> float:
    """Shannon's, in bits for each character."""
    size = len(text)
    return -sum(n / size * math.log2(n / size) for n in Counter(text).values())


def is_base64_pair(value: str) -> bool:
    """What the scheme Basic sends: `user:password` in base 64."""
    import base64
    import binascii

    try:
        return b":" in base64.b64decode(value[:1024], validate=True)
    except (binascii.Error, ValueError):
        return False


def _words(value: str) -> list[str]:
    parts = compiled(r"[^A-Za-z0-9]+").split(value[:_WINDOW])
    return [word for part in parts if part for word in camel_words(part)]


def camel_words(part: str) -> list[str]:
    """`accessToken` as two words; `wJalrXUtn` stays one, because what it would fall into are no words."""
    words: list[str] = compiled(r"[A-Z]+(?![a-z])\d{0,5}|[A-Z]?[a-z]+\d{0,5}").findall(part)
    whole = sum(map(len, words)) == len(part) and len(part) >= len(words) * _CAMEL_AVERAGE
    return words if whole else [part]


def _is_word(part: str) -> bool:
    if part.isalpha():
        return part[1:].islower() or part.isupper() or len(part) < _RANDOM_LENGTH or len(camel_words(part)) > 1
    known = r"(?:[A-Z]?[a-z]+|[A-Z]+)\d{0,4}|\d{1,4}[A-Za-z]{0,3}|\d+|(?i:sha|md|base|utf|oauth|x|i|v)\d{1,4}[a-z]*"
    if compiled(known).fullmatch(part):
        return True
    words = camel_words(part)
    # After a digit a word starts with a capital: `base64Decoded`, not `abcd1234efgh5678`.
    return len(words) > 1 and all(word[0].isupper() for word in words[1:])
