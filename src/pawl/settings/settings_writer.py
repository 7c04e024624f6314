"""Writing the user's own settings: the default model, MCP servers, and keys in a file that only they can read."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

from pawl.core.errors import ConfigError, why
from pawl.core.typed import read_toml
from pawl.settings import files as bounded
from pawl.settings.config import IN_KEYRING, Config
from pawl.settings.keyring import stored

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


def save_key(config: Config, name: str, value: str) -> Path | None:
    """Keep a key in the keyring of the system, else in the `.env` beside the settings; that file if it is there."""
    path = Path(os.path.realpath(config.file.parent / ".env"))
    if not value or any(sign in value for sign in "'\n\r"):
        raise ConfigError("that is not a key", advice="a key is one line without quotes")
    in_keyring = stored(name, value, config.environment)
    lines = [line for line in _text(path).splitlines() if not re.match(rf"\s*(?:export\s+)?{name}\s*=", line)]
    _replace(path, "\n".join([*lines, f"{name}='{IN_KEYRING if in_keyring else value}'"]) + "\n")
    return None if in_keyring else path


def save_server(config: Config, name: str, server: Mapping[str, object]) -> Path:
    """Add or replace an MCP server; everything else in the file stays as it is written."""
    path = Path(os.path.realpath(config.file))
    body = "".join(f"{key} = {_toml(value)}\n" for key, value in server.items())
    text = _without_server(_text(path), name).rstrip()
    return _changed(path, f"{text}\n\n[mcp.servers.{name}]\n{body}".lstrip("\n"), name, server)


def remove_server(config: Config, name: str) -> Path:
    path = Path(os.path.realpath(config.file))
    return _changed(path, _without_server(_text(path), name), name, None)


def _without_server(text: str, name: str) -> str:
    table = rf"^\[mcp\.servers\.\"?{re.escape(name)}\"?(?:\.[^\]]*)?\][^\n]*\n(?:(?!\[)[^\n]*(?:\n|\Z))*"
    return re.sub(table, "", text, flags=re.MULTILINE)


def _changed(path: Path, made: str, name: str, wanted: Mapping[str, object] | None) -> Path:
    servers = read_toml(made).get("mcp", {}).get("servers", {})
    if servers.get(name) != wanted:
        raise ConfigError(f"{str(path)!r} could not be changed", advice=f"change [mcp.servers.{name}] there yourself")
    _replace(path, made)
    return path


def _toml(value: object) -> str:
    """JSON's texts, numbers and lists are TOML's; only tables are written otherwise."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(inner)}" for key, inner in value.items()) + " }"
    return json.dumps(value)


def _text(path: Path) -> str:
    try:
        return bounded.read_text(path)
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{str(path)!r} cannot be read: {why(error)}", advice="see what is wrong with it") from error


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
