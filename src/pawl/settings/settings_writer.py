"""Writing the user's own settings: the default model, and keys in a file that only they can read."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

from pawl.core.errors import ConfigError
from pawl.core.typed import read_toml
from pawl.settings import files as bounded
from pawl.settings.config import Config

_TABLE = re.compile(r"^\[models\][ \t]*(?:#.*)?$", re.MULTILINE)
_NEXT = re.compile(r"^\[", re.MULTILINE)
_DEFAULT = re.compile(r"^default[ \t]*=.*$", re.MULTILINE)


def save_default_model(config: Config, model: str) -> Path:
    """Set `default` under [models]; everything else in the file stays as it is written."""
    path = Path(os.path.realpath(config.file))
    text = _text(path)
    line = f'default = "{model}"' if '"' not in model and "\\" not in model else f"default = '{model}'"
    found = _TABLE.search(text)
    if found is None:
        made = f"{text.rstrip()}\n\n[models]\n{line}\n".lstrip("\n")
    else:
        after = _NEXT.search(text, found.end())
        end = after.start() if after else len(text)
        body = text[found.end() : end]
        body = _DEFAULT.sub(lambda _: line, body, count=1) if _DEFAULT.search(body) else f"\n{line}{body}"
        made = text[: found.end()] + body + text[end:]
    if read_toml(made).get("models", {}).get("default") != model:
        raise ConfigError(f"{str(path)!r} could not be changed", advice=f"write it yourself under [models]: {line}")
    _replace(path, made)
    return path


def save_key(config: Config, name: str, value: str) -> Path:
    """Add or replace a key in the `.env` beside the settings, which only the user can read."""
    path = Path(os.path.realpath(config.file.parent / ".env"))
    if not value or any(sign in value for sign in "'\n\r"):
        raise ConfigError("that is no key", advice="a key is one line without quotes")
    lines = [line for line in _text(path).splitlines() if not re.match(rf"\s*(?:export\s+)?{name}\s*=", line)]
    _replace(path, "\n".join([*lines, f"{name}='{value}'"]) + "\n")
    return path


def _text(path: Path) -> str:
    try:
        return bounded.read_text(path)
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{str(path)!r} cannot be read: {error}", advice="see what is wrong with it") from error


def _replace(path: Path, text: str) -> None:
    made = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        made.replace(path)
    except OSError as error:
        made.unlink(missing_ok=True)
        raise ConfigError(f"{str(path)!r} cannot be written: {error.strerror}", advice="see who owns it") from error
