"""Taking secrets out of text before it is stored or shown: keys, tokens, passwords, private keys.

Every pattern is bounded, so that the time grows with the text and no faster, whoever wrote the text.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

MARK = "[redacted]"

_WHOLE = re.compile(
    r"""
    -----BEGIN\ [A-Z0-9 ]{0,40}PRIVATE\ KEY(?:\ BLOCK)?-----
      .*?(?:-----END\ [A-Z0-9 ]{0,40}PRIVATE\ KEY(?:\ BLOCK)?-----|\Z)
    | \b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}
    | \b(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{10,}
    | \bgh[pousr]_[A-Za-z0-9]{20,}
    | \bgithub_pat_[A-Za-z0-9_]{20,}
    | \bgl(?:pat|ptt|dt|rt)-[A-Za-z0-9_-]{16,}
    | \bxox[abeposr]-[A-Za-z0-9-]{10,}
    | \bxapp-[A-Za-z0-9-]{10,}
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b
    | \bAIza[A-Za-z0-9_-]{30,}
    | \bya29\.[A-Za-z0-9_-]{20,}
    | \b(?:npm|hf|gsk|dop_v1|shpat)_[A-Za-z0-9]{30,}
    | \b(?:pypi|xai|nvapi)-[A-Za-z0-9_-]{30,}
    | \bSG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}
    | \bAGE-SECRET-KEY-1[A-Z0-9]{50,}
    | (?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,4096}\.[A-Za-z0-9_-]{8,8192}\.[A-Za-z0-9_-]{8,4096}
    """,
    re.VERBOSE | re.DOTALL,
)

_WORD = r"(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential)"
_QUOTED = r"""(?P<value>(?!\[redacted\])(?:"[^"\n]+"|'[^'\n]+'"""
_VALUE = _QUOTED + r"""|[^\s"'&;,)}\]]{4,}))"""
_ARGUMENT = _QUOTED + r"""|[^\s"'&;,)}\]]+))"""

_PATTERNS = (
    # A header whose whole value is secret.
    re.compile(
        r"""(?ix)
        (?P<name>\b(?:proxy-)?authorization["']?\s{0,4}[:=]\s{0,4}+["']?+(?:[a-z]{1,16}\s{1,4})?+
          | \b(?:set-)?cookie["']?\s{0,4}:\s{0,4}+["']?+)
        (?P<value>(?!\[redacted\])[^\r\n"']+)
        """
    ),
    re.compile(
        r"(?i)(?P<name>\b(?:bearer|basic)\s{1,4})"
        r"(?P<value>(?-i:(?=[a-z._~+/-]{0,256}[A-Z0-9=]))[a-z0-9+/_.=~-]{8,})"
    ),
    # A password in an address, as in https://user:password@host.
    re.compile(r"(?P<name>://[^\s/:@]{0,256}:)(?P<value>(?!\[redacted\])[^\s/@]{1,1024})(?=@)"),
    # An option that is followed by its value.
    re.compile(rf"(?i)(?P<name>(?<![^\s\"'])--?[a-z0-9-]{{0,40}}{_WORD}(?:=|\s{{1,4}}+))(?!-)" + _ARGUMENT),
    re.compile(
        r"(?P<name>(?<!\S)(?:-u|--user|--proxy-user)[=\s]{1,4}+[\"']?+[^\s:\"']{1,128}:)"
        r"(?P<value>(?!\[redacted\])[^\s\"']+)"
    ),
    re.compile(r"(?P<name>\bsshpass\s{1,4}-p\s{0,4}+)" + _ARGUMENT),
    # A name that is given a value, as in an environment, JSON, YAML or a query.
    re.compile(rf"(?i)(?P<name>{_WORD}s?[a-z0-9_.-]{{0,40}}\\?[\"']?\s{{0,4}}(?:=>?+|:)\s{{0,4}}+\\?+)" + _VALUE),
)

_COUNT = re.compile(r"(?i)tokens\W*\Z")
_SECRET_NAME = re.compile(rf"(?i){_WORD}")
_SECRET_OPTION = re.compile(rf"(?i)--?[a-z0-9-]{{0,40}}{_WORD}")


def redacted(text: str) -> str:
    """The text with every secret that can be recognised replaced by a mark."""
    text = _WHOLE.sub(MARK, text)
    for pattern in _PATTERNS:
        text = pattern.sub(_hidden, text)
    return text


def redacted_command(words: Sequence[str]) -> str:
    """A command as it can be typed again, except for its secrets."""
    shown: list[str] = []
    is_value = False
    for word in words:
        shown.append(MARK if is_value and not word.startswith("-") else shlex.quote(redacted(word)))
        is_value = _SECRET_OPTION.fullmatch(word) is not None
    return redacted(" ".join(shown))


def redacted_body(body: Mapping[str, object]) -> dict[str, object]:
    """The same for values in values: what has the name of a secret is hidden whatever it looks like."""
    return {
        redacted(key): MARK if isinstance(value, str) and value and _SECRET_NAME.search(key) else _redacted_value(value)
        for key, value in body.items()
    }


def _redacted_value(value: object) -> object:
    match value:
        case str():
            return redacted(value)
        case Mapping():
            return redacted_body({str(key): inner for key, inner in value.items()})
        case list() | tuple():
            return [_redacted_value(inner) for inner in value]
    return value


def _hidden(match: re.Match[str]) -> str:
    name, value = match["name"], match["value"]
    if value.isdigit() and _COUNT.search(name):
        return match[0]
    quote = value[0] if value[0] in "\"'" and value[-1] == value[0] and len(value) > 1 else ""
    return f"{name}{quote}{MARK}{quote}"
