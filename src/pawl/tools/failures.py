"""What the operating system reports, in the words of the error tree. Only this module knows error numbers."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping

from pawl.core.errors import (
    AlreadyThere,
    DiskFull,
    NotAFile,
    NotFound,
    PathRefused,
    PawlError,
    PermissionDenied,
    TimedOut,
    ToolError,
)

_NO_SPACE = (DiskFull, "there is no room to write", "free some space, then try again")
_DENIED = (PermissionDenied, "permission is denied", "choose another file, or ask the user to change its permissions")
_ODD_PATH = (PathRefused, "the path cannot be followed", "give a plain path relative to the workspace")
_ODD_FILE = (NotAFile, "it is not a regular file", "name a file, not a folder or a device")

_MEANING: Mapping[int, tuple[type[PawlError], str, str]] = {
    errno.ENOSPC: _NO_SPACE,
    errno.EDQUOT: _NO_SPACE,
    errno.EFBIG: _NO_SPACE,
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.EROFS: _DENIED,
    errno.ENOENT: (NotFound, "there is no such file", "check the spelling, or search for it"),
    errno.EEXIST: (AlreadyThere, "it is already there", "edit it, or choose another name"),
    errno.EISDIR: _ODD_FILE,
    errno.ENOTDIR: _ODD_FILE,
    errno.ENXIO: _ODD_FILE,
    errno.ENODEV: _ODD_FILE,
    errno.ELOOP: _ODD_PATH,
    errno.ENAMETOOLONG: _ODD_PATH,
    errno.ETIMEDOUT: (TimedOut, "the file system did not answer in time", "try again, or ask the user to look at it"),
}


def from_os_error(error: OSError) -> PawlError:
    """The error of the tree that says the same."""
    known = _MEANING.get(error.errno or 0)
    kind, meaning, advice = known or (ToolError, error.strerror or str(error), "ask the user to look at it")
    if error.filename is None:
        return kind(meaning, advice=advice)
    # A descriptor stands where a name is unknown, and a name of bytes is shown as the file system spells it.
    name = error.filename if isinstance(error.filename, int) else os.fsdecode(error.filename)
    return kind(f"{name!r}: {meaning}", advice=advice)
