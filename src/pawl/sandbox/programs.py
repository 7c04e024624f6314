"""The programs of this machine that build the sandbox, looked up only in the system's own folders."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

_TRUSTED = "/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin:/run/current-system/sw/bin"
ENVIRONMENT = {"PATH": _TRUSTED, "LANG": "C.UTF-8"}
"""What these programs themselves run with: nothing of the caller's environment or the command's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """Paths; None for what is not installed."""

    bubblewrap: str | None
    unshare: str | None
    mount: str | None
    shell: str = "/bin/sh"

    @classmethod
    def installed(cls) -> Programs:
        def find(name: str) -> str | None:
            return shutil.which(name, path=_TRUSTED)

        return cls(bubblewrap=find("bwrap"), unshare=find("unshare"), mount=find("mount"))
