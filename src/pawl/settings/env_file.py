"""Variables from `.env` files, read once at the entry: the user's own, and a workspace's only where it is trusted.

Nothing is put into the environment of the process; the real environment wins. A workspace may bring keys, and nothing
that says where they are sent. Nothing is executed or filled in.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

from pawl.core.errors import ConfigError
from pawl.core.redact import register
from pawl.settings import files as bounded
from pawl.settings.config import Config
from pawl.settings.trust import is_trusted

LARGEST_BYTES = 64 << 10

_LINE = re.compile(r"[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*")
_BLANK = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\n|\Z)")
_BARE = re.compile(r"[^\n]*")
_COMMENT = re.compile(r"(?:\A|[ \t]+)#.*\Z")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "$": "$"}
_QUOTED = {
    "'": re.compile(r"'(?P<text>[^']*)'"),
    '"': re.compile(r'"(?P<text>(?:[^"\\]|\\.)*+)"', re.DOTALL),
}
_FILLED_IN = re.compile(r"(?<!\\)(?:\$[({]|`)")
_WORKSPACE_NAME = re.compile(r"(?!PAWL_|OTEL_)[A-Z0-9_]*(?:_API_KEY|_ACCESS_TOKEN|_AUTH_TOKEN|_API_TOKEN)")


def environment_of(environment: Mapping[str, str], *, user: Path, workspace: str = "") -> dict[str, str]:
    """The environment with what the files add to it.

    `user` is the user's own file. `workspace` is the text of one that the user trusts: only keys are taken from it.
    The environment wins over the user's file, and that over the workspace's.
    """
    keys = parse(workspace, ".env", wanted=may_come_from_workspace)
    return {**keys, **read(user), **environment}


def may_come_from_workspace(name: str) -> bool:
    """Whether a repository may set it: a key is sent where the user's own settings say."""
    return _WORKSPACE_NAME.fullmatch(name) is not None


def read(path: Path, *, wanted: Callable[[str], bool] = lambda _: True) -> dict[str, str]:
    """The variables of a file; none when there is no such file. An error names the line, never its value."""
    return parse(_text(path), str(path), wanted=wanted)


def parse(text: str, source: str, *, wanted: Callable[[str], bool] = lambda _: True) -> dict[str, str]:
    """The variables of a text, the last of each name; `source` names it in errors.

    A value is bare, in single quotes as it is, or in double quotes with the escapes of n, r, t, $, quote and
    backslash. One in quotes may go over several lines. A `#` starts a comment at the start of a line or behind room.
    """
    values: dict[str, str] = {}
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    at = 0
    while at < len(text):
        blank = _BLANK.match(text, at)
        if blank:
            at = blank.end()
            continue
        line = text.count("\n", 0, at) + 1
        head = _LINE.match(text, at)
        if head is None:
            raise _mistake(source, line, "is not NAME=value")
        value, at = _value(text, head.end(), source, line)
        if wanted(head["name"]):
            values[head["name"]] = _checked(value, head["name"], text[head.end() : head.end() + 1], source, line)
    return values


def _value(text: str, at: int, source: str, line: int) -> tuple[str, int]:
    """The value that starts there as it is written, and where the next line starts."""
    pattern = _QUOTED.get(text[at : at + 1])
    if pattern is None:
        bare = _BARE.match(text, at)
        end = bare.end() if bare else at
        return _COMMENT.sub("", text[at:end]).rstrip(), end + 1
    quoted = pattern.match(text, at)
    if quoted is None:
        raise _mistake(source, line, "opens a quote that is not closed")
    rest = _BLANK.match(text, quoted.end())
    if rest is None:
        raise _mistake(source, line, "goes on behind the closing quote")
    return quoted["text"], rest.end()


def _checked(value: str, name: str, quote: str, source: str, line: int) -> str:
    if quote != "'" and _FILLED_IN.search(value):
        raise _mistake(
            source, line, f"asks for {name} to be filled in, which is not done", "write the value, or use single quotes"
        )
    if quote == '"':
        value = _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[0]), value)
    if "\0" in value:
        raise _mistake(source, line, f"gives {name} a value with a NUL in it")
    return value


def _text(path: Path) -> str:
    """A regular file of a bounded size; a pipe would not end, and a device would not either."""
    try:
        return bounded.read_text(path, LARGEST_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise _unreadable(path, error.strerror or "it cannot be opened") from None
    except UnicodeDecodeError:
        # The error itself would show bytes of the file.
        raise _unreadable(path, "it is not UTF-8") from None


def _unreadable(path: Path, why: str) -> ConfigError:
    return ConfigError(f"{str(path)!r} cannot be read: {why}", advice="mend or remove the file")


def _mistake(source: str, line: int, what: str, advice: str = "mend that line") -> ConfigError:
    return ConfigError(f"line {line} of {source!r} {what}", advice=advice)


SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL")
"""The values of variables whose names hold one of these are never sent, stored nor shown, whatever they look like."""


_SECRET_PARTS = re.compile(r"(?:.*_)?(?:JWT|PAT|PASS)(?:_.*)?|.*_PWD", re.IGNORECASE)
_URL_PASSWORD = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#:@]*:(?P<whole>(?P<first>[^\s@]+)(?:@[^\s@/]+)*)@")
"""The password of an address; one that holds an @ itself is also taken whole."""


def is_secret_name(name: str) -> bool:
    return any(word in name.upper() for word in SECRET_WORDS) or _SECRET_PARTS.fullmatch(name) is not None


def register_secrets(config: Config, workspace: str) -> None:
    """Makes them known before anything is stored or said. A file that cannot be read is told by who needs it."""
    files = [config.file.parent / ".env"]
    own = Path(workspace) / ".env"
    with suppress(ConfigError):
        if own.exists() and is_trusted(config, workspace):
            files.append(own)
    found = [config.environment]
    texts = list(config.environment.values())
    for path in files:
        with suppress(ConfigError):
            texts.append(_text(path))
            found.append(read(path, wanted=is_secret_name))
    values = (value for several in found for name, value in several.items() if is_secret_name(name))
    register(*(value for value in values if not _is_a_place(value)), *_url_passwords(texts))


def _url_passwords(texts: Iterable[str]) -> Iterator[str]:
    """The passwords of addresses such as `postgres://user:password@host/name`, as written and as they are meant."""
    for found in (found for text in texts for found in _URL_PASSWORD.finditer(text)):
        for password in {found["first"], found["whole"]}:
            yield from {password, unquote(password)}


def _is_a_place(value: str) -> bool:
    """A path of this machine, such as that of a file with keys, is no secret; it would be hidden from every message."""
    return value.startswith("/") and os.path.exists(value)
