"""Secrets that are known by their own shape, whatever stands beside them: tokens with a prefix, private keys, headers.

A shape is looked for where its needle stands, so that a text without the needle costs one search. Every pattern is
bounded or moves on by what it has read: the time grows with the text and no faster, whoever wrote the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pawl.core import secret_names as redact_names
from pawl.core.secret_names import compiled, is_base64_pair, is_mixed, is_placeholder, is_random, without_references

MARK = "[redacted]"

Span = tuple[int, int]


def _value(match: re.Match[str]) -> Span | None:
    return match.span("value")


@dataclass(frozen=True, slots=True)
class Shape:
    """Where to look, what must stand there, and which part of it is hidden."""

    needle: str
    """In small letters where the case does not matter."""
    pattern: str
    """Matched at the needle."""
    judge: Callable[[re.Match[str]], Span | None] = _value
    """The span to hide, or None for what only looks like a secret."""


def hidden(text: str) -> str:
    """The text with what has the shape or the name of a secret replaced by a mark."""
    return _hidden(text, _EXACT, _ANY_CASE)


def hidden_each(texts: Sequence[str]) -> list[str]:
    """The same for many short texts, each for itself; what none of them can hold is looked for once."""
    together = "\n".join(texts)
    lowered = _lowered(together)
    exact = [shape for shape in _EXACT if shape.needle in together]
    any_case = [shape for shape in _ANY_CASE if shape.needle in lowered]
    return [_hidden(text, exact, any_case) for text in texts] if exact or any_case else list(texts)


def _hidden(text: str, exact: Iterable[Shape], any_case: Iterable[Shape]) -> str:
    for shape in exact:
        if shape.needle in text:
            text = _replaced(text, text, shape)
    lowered = _lowered(text)
    for shape in any_case:
        if shape.needle in lowered:
            changed = _replaced(text, lowered, shape)
            if changed is not text:
                text, lowered = changed, _lowered(changed)
    return text


def _lowered(text: str) -> str:
    # The one letter whose small form is longer would move everything behind it.
    return text.replace("\u0130", "I").lower()


def _replaced(text: str, haystack: str, shape: Shape) -> str:
    pattern = compiled(shape.pattern)
    pieces: list[str] = []
    done = 0
    at = haystack.find(shape.needle)
    while at >= 0:
        match = pattern.match(text, at)
        span = shape.judge(match) if match else None
        if span is not None:
            pieces += (text[done : span[0]], MARK)
            done = span[1]
        at = haystack.find(shape.needle, max(at + len(shape.needle), done))
    return "".join((*pieces, text[done:])) if pieces else text


_START = r"(?:(?<![A-Za-z0-9])|(?<=[^\\]\\[nrt]))"
"""Where a word starts, also behind the end of a line that is written as two characters."""


def _token(prefix: str, body: str = r"[A-Za-z0-9_-]{16,}+") -> Shape:
    # Names such as `sk-folding-cube-animation` have no digit.
    return Shape(prefix, rf"{_START}(?P<value>{re.escape(prefix)}(?=[A-Za-z_.-]{{0,100}}+[0-9]){body})")


_PRIVATE_KEY = r"""
    (?P<value>-----BEGIN\ [A-Z0-9\ ]{0,40}PRIVATE\ KEY(?:\ BLOCK)?-----
    (?: (?P<inside>(?:(?!-----(?:BEGIN|END)).){0,32768}+)-----END\ [A-Z0-9\ ]{0,40}PRIVATE\ KEY(?:\ BLOCK)?-----
      | (?P<cut>[ \t]*(?:\r?\n|\\r|\\n|(?=\Z))
          (?:[A-Za-z0-9+/=:,.\s-]|\\[nrt]|["'+\s\\]{1,40}(?=[A-Za-z0-9+/=]{24})){0,32768}+)
    ))
"""


def _private_key(match: re.Match[str]) -> Span | None:
    inside = match["inside"]
    if inside and any(quote in inside for quote in "\"'`") and not compiled(r"[A-Za-z0-9+/]{24}").search(inside):
        return None  # The two lines as constants of a program.
    return match.span()


def _has_own(value: str) -> bool:
    """More than a reference or a placeholder."""
    own = without_references(value)
    return bool(own) and not is_placeholder(own)


def _own_value(match: re.Match[str]) -> Span | None:
    return match.span("value") if _has_own(match["value"]) else None


def _random_value(match: re.Match[str]) -> Span | None:
    return match.span("value") if is_random(match["value"]) else None


def _user_value(match: re.Match[str]) -> Span | None:
    """Numbers are a user and a group."""
    return None if match["value"].isdigit() else _own_value(match)


def _scheme_value(match: re.Match[str]) -> Span | None:
    value = match["value"]
    return match.span("value") if _has_own(value) and (is_mixed(value) or is_base64_pair(value)) else None


def _header_value(match: re.Match[str]) -> Span | None:
    """Looked at word by word, because code and prose name headers as well; hidden to the end of the line."""
    words = without_references(match["value"]).replace("=", " ").replace(";", " ").split()
    if not any(len(word) >= 6 and is_mixed(word) and not is_placeholder(word) for word in words):
        return None
    rest = compiled(r"""[^\r\n"'\\]*+""").match(match.string, match.end())
    return match.start("value"), rest.end() if rest else match.end()


_LINE = r"""(?P<value>(?!\[redacted\])[^\r\n"'\\]{1,2048}+)"""
_QUOTES = r"""\\{0,3}["']?+"""
_WORD = r"""(?P<value>(?!\[redacted\])(?:"[^"\n]{1,1024}"|'[^'\n]{1,1024}'|[^\s"'&;,)}\]]+))"""
_PASSWORD_BEFORE_HOST = r"""
    (?P<value>(?!\[redacted\])[^\s/@"'<>`]{1,512}+(?:@(?!\[redacted\])[^\s/@"'<>`]{1,128}+){0,3})(?=@)
"""
_DATABASES = ("postgres", "postgresql", "mysql", "mariadb", "mongodb", "redis", "amqp", "mssql", "clickhouse")


def _address_value(match: re.Match[str]) -> Span | None:
    if match["alone"]:
        return match.span("alone") if is_random(match["alone"]) else None
    return _own_value(match)


def _database_value(match: re.Match[str]) -> Span | None:
    """Only there may a password hold a slash; elsewhere a path with an at sign looks the same."""
    scheme = match.string[max(0, match.start() - 24) : match.start()].lower()
    name = compiled(r"([a-z]+)(?:\+[a-z0-9]+)?\Z").search(scheme)
    return _own_value(match) if name and name[1].startswith(_DATABASES) else None


_LETTERS = r"[A-Za-z0-9]{20,}+"
_WORDS = r"[A-Za-z0-9_-]{20,}+"
_HEX = r"[a-f0-9]{32,}+"

_TOKENS = (
    *(_token(prefix) for prefix in ("sk-", "pk-", "rk-", "csk-", "pplx-", "tskey-", "GOCSPX-", "sbp_", "sb_secret_")),
    *(_token(f"{kind}k_{use}_", r"[A-Za-z0-9]{10,}+") for kind in "spr" for use in ("live", "test")),
    *(_token(f"gh{kind}_", _LETTERS) for kind in "pousr"),
    *(
        _token(prefix, _WORDS)
        for prefix in ("github_pat_", "dckr_pat_", "whsec_", "lin_api_", "figd_", "glsa_", "glc_")
    ),
    *(_token(f"gl{kind}-") for kind in ("pat", "ptt", "dt", "rt", "cbt", "agent", "soat", "ft")),
    *(_token(f"xox{kind}-", r"[A-Za-z0-9-]{10,}+") for kind in "abceposr"),
    _token("xapp-", r"[A-Za-z0-9-]{10,}+"),
    *(_token(prefix, r"[A-Za-z0-9]{30,}+") for prefix in ("npm_", "hf_", "gsk_", "r8_", "pul-", "ntn_", "fw_")),
    *(_token(prefix, r"[A-Za-z0-9_-]{30,}+") for prefix in ("pypi-", "xai-", "nvapi-", "AIza", "ATATT3", "ATBB")),
    *(_token(prefix, _HEX) for prefix in ("dapi", "key-", "rubygems_", "dop_v1_", "doo_v1_", "shpat_", "shpss_")),
    *(_token(prefix, r"[A-Za-z0-9_=-]{30,}+") for prefix in ("sntrys_", "sntryu_", "pscale_pw_", "pscale_tkn_")),
    *(_token(prefix, r"[A-Z0-9-]{24,}+") for prefix in ("NRAK-", "PMAK-")),
    *(
        _token(prefix, r"[A-Za-z0-9_.-]{20,}+")
        for prefix in ("ya29.", "hvs.", "hvb.", "dp.pt.", "dp.st.", "fo1_", "fm2_")
    ),
    _token("AGE-SECRET-KEY-1", r"[A-Z0-9]{50,}+"),
    Shape("SG.", rf"{_START}(?P<value>SG\.[A-Za-z0-9_-]{{16,64}}\.[A-Za-z0-9_-]{{16,64}})"),
    Shape("eyJ", r"(?<![A-Za-z0-9_-])(?P<value>eyJ[\w-]{8,4096}\.[\w-]{8,8192}\.[\w-]{8,4096})"),
    Shape("eyJ", r"(?<=\\[nrt])(?P<value>eyJ[\w-]{8,4096}\.[\w-]{8,8192}\.[\w-]{8,4096})"),
    # An Azure client secret has this in its middle.
    Shape("8Q~", r"(?P<value>8Q~[A-Za-z0-9~._-]{31,34})(?![A-Za-z0-9~._-])"),
    Shape(".atlasv1.", r"(?P<value>\.atlasv1\.[A-Za-z0-9_=-]{60,}+)"),
    # A Telegram bot's.
    Shape(":AA", r"(?<=[0-9]{8})(?P<value>:AA[A-Za-z0-9_-]{33})(?![A-Za-z0-9_-])"),
)

_PLACES = (
    Shape("-----BEGIN ", _PRIVATE_KEY, _private_key),
    # With the secret key beside it, as in a file of credentials.
    *(
        Shape(
            prefix, rf"{_START}(?P<value>{prefix}[A-Z0-9]{{16}}\b(?:[\s,:;\"']{{1,4}}[A-Za-z0-9/+]{{40}}(?![\w/+=]))?)"
        )
        for prefix in ("AKIA", "ASIA")
    ),
    Shape("hooks.slack.com/", r"hooks\.slack\.com/[a-z]{1,16}/(?P<value>[A-Za-z0-9/_-]{10,}+)"),
    Shape("/api/webhooks/", r"/api/webhooks/(?P<value>[0-9]{5,}/[A-Za-z0-9_-]{20,}+)"),
    Shape("webhook.office.com/", r"webhook\.office\.com/\w{1,16}/(?P<value>[A-Za-z0-9@/_-]{20,}+)"),
    Shape(
        "://",
        rf"://(?:[^\s/:@\"'<>`]{{0,256}}+:{_PASSWORD_BEFORE_HOST}|(?P<alone>[A-Za-z0-9_-]{{20,256}}+)(?=@))",
        _address_value,
    ),
    Shape("://", r"""://[^\s/:@"'<>`]{0,256}+:(?P<value>(?!\[redacted\])[^\s@"'<>`]{1,256}+)(?=@)""", _database_value),
    *(
        Shape(
            option,
            rf"(?<![^\s\"'`]){option}[=\s]{{1,4}}+{_QUOTES}[^\s:\"']{{1,128}}+:(?P<value>(?!\[redacted\])[^\s\"']{{1,512}}+)",
            _user_value,
        )
        for option in ("-u", "--user", "--proxy-user")
    ),
    Shape("sshpass", r"sshpass\s{1,4}-p\s{0,4}+" + _WORD),
    *(Shape(name, rf"\{name}(?P<value>[A-Za-z0-9%+/=_-]{{16,2048}}+)", _random_value) for name in ("?key=", "&key=")),
    *(Shape(f"{sign}sig=", rf"\{sign}sig=(?P<value>(?!\[redacted\])[A-Za-z0-9%+/=_-]{{16,2048}}+)") for sign in "?&;"),
)
_EXACT = (*_PLACES, *_TOKENS)

_ANY_CASE = (
    Shape("x-amz-signature=", r".{16}(?P<value>(?!\[redacted\])[A-Za-z0-9%]{16,512}+)"),
    Shape(
        "authorization",
        rf".{{13}}{_QUOTES}\s{{0,4}}[:=]\s{{0,4}}+{_QUOTES}(?:[A-Za-z]{{1,16}}\s{{1,4}})?+{_LINE}",
        _header_value,
    ),
    Shape("cookie", rf".{{6}}{_QUOTES}\s{{0,4}}:\s{{0,4}}+{_QUOTES}{_LINE}", _header_value),
    *(
        Shape(
            scheme,
            rf"(?<![A-Za-z0-9]){'.' * len(scheme)}\s{{1,4}}+(?P<value>[A-Za-z0-9+/_.=~:-]{{8,4096}}+)",
            _scheme_value,
        )
        for scheme in ("bearer", "basic", "bot")
    ),
    Shape("jdbc:oracle:thin:", r".{17}[^\s/@]{1,64}+/(?P<value>(?!\[redacted\])[^\s/@]{1,128}+)(?=@)", _own_value),
    *(Shape(needle, redact_names.PATTERN, redact_names.secret_span) for needle in redact_names.NEEDLES),
)
