"""Taking secrets out of text before it is stored or shown: keys, tokens, passwords, private keys."""

from __future__ import annotations

import re

MARK = "[redacted]"

_WHOLE = re.compile(
    r"""
    -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----.*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z)
    | \b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}
    | \bgh[pousr]_[A-Za-z0-9]{20,}
    | \bgithub_pat_[A-Za-z0-9_]{20,}
    | \bglpat-[A-Za-z0-9_-]{16,}
    | \bxox[abposr]-[A-Za-z0-9-]{10,}
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b
    | \bAIza[A-Za-z0-9_-]{30,}
    | \bnpm_[A-Za-z0-9]{30,}
    | \bpypi-[A-Za-z0-9_-]{30,}
    | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}
    """,
    re.VERBOSE | re.DOTALL,
)

_NAMED = re.compile(
    r"""
    (?P<name>\b[A-Za-z0-9_.-]*
      (?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential)s?
      [A-Za-z0-9_.-]*["']?\s*(?:=|:)\s*["']?)
    (?P<value>[^\s"'&;,]{4,})
    """,
    re.VERBOSE | re.IGNORECASE,
)

_OPTION = re.compile(
    r"(?P<name>--?(?:password|passwd|token|secret|api-?key)(?:=|\s+)[\"']?)(?P<value>[^\s\"']{4,})", re.IGNORECASE
)

_HEADER = re.compile(r"(?P<name>\b(?:Bearer|Basic)\s+)(?P<value>[A-Za-z0-9+/_.=~-]{8,})")

_ADDRESS = re.compile(r"(?P<name>\b[a-z][a-z0-9+.-]*://[^\s/:@]*:)(?P<value>[^\s/@]+)(?=@)")


def redacted(text: str) -> str:
    """The text with every secret that can be recognised replaced by a mark."""
    text = _WHOLE.sub(MARK, text)
    for pattern in (_HEADER, _ADDRESS, _OPTION, _NAMED):
        text = pattern.sub(lambda match: match["name"] + MARK, text)
    return text
