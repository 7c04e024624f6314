"""The names of the folders in which a promotion stages what it writes.

Each is a keyed hash of the entry's number, with a random key that lies in the state folder. Nobody else can tell such
a name before it is used, and of what stands in a workspace only the folders of an interrupted entry are Pawl's own.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path

from pawl.settings.files import writer_lock

STAGING_PREFIX = ".pawl-tmp-"
_KEY = "staging-key"
_KEY_BYTES = 32
_TRIES = 3


def staging_names(state: Path, number: int) -> tuple[str, ...]:
    """The names for this entry, in the order in which they are tried."""
    key = _key(state)
    words = (f"{number}.{attempt}".encode() for attempt in range(_TRIES))
    return tuple(f"{STAGING_PREFIX}{hmac.new(key, word, hashlib.sha256).hexdigest()[:32]}" for word in words)


def former_name(state: Path, number: int) -> str:
    """The name that an earlier version staged this entry under."""
    return f"{STAGING_PREFIX}{hashlib.sha256(os.fsencode(state)).hexdigest()[:8]}-{number}"


def _key(state: Path) -> bytes:
    """The key, made at the first use. It appears whole or not at all, whoever else makes one at the same time."""
    path = state / _KEY
    with suppress(FileNotFoundError):
        if len(key := path.read_bytes()) == _KEY_BYTES:
            return key
    with writer_lock(state, str(path)):
        if not path.exists() or path.stat().st_size != _KEY_BYTES:
            _make(path)
    return path.read_bytes()


def _make(path: Path) -> None:
    made = path.with_name(f"{_KEY}-{secrets.token_hex(8)}")
    fd = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, secrets.token_bytes(_KEY_BYTES))
        os.fsync(fd)
        made.replace(path)
    except BaseException:
        made.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
