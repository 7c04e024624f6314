"""The programs of this machine that build the sandbox, looked up only in the system's own folders."""

from __future__ import annotations

import shutil

from pawl.core.lazy_dataclass import dataclass

_TRUSTED = "/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin:/run/current-system/sw/bin"
ENVIRONMENT = {"PATH": _TRUSTED, "LANG": "C.UTF-8"}
"""The environment of these programs themselves: nothing of the caller's or the command's."""


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


INSTALL_BUBBLEWRAP = (
    "install bubblewrap 0.8 or newer: `apt install bubblewrap`, `dnf install bubblewrap` or `pacman -S bubblewrap`"
)
ALLOW_NAMESPACES = (
    "allow user namespaces. Ubuntu 24.04 and newer: `sudo cp "
    "/usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ && "
    "sudo apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict`. Docker: start the container with "
    "`--security-opt seccomp=unconfined --security-opt apparmor=unconfined`. "
    "Elsewhere: `sudo sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=15000`"
)
SHOW_PROC = "start the container with `--security-opt systempaths=unconfined`, so that a new /proc can be mounted"
ALLOW_FILTERS = "use a kernel with CONFIG_SECCOMP_FILTER, and a container that may load its own filters"
NEWER_KERNEL = "use Linux 6.2 or newer with Landlock enabled (`lsm=landlock,…` on the kernel command line)"
SHOW_PROCESSES = "mount /proc without hidepid, and use a kernel with CONFIG_PROC_CHILDREN"
MOVE_STATE = (
    "keep Pawl's state on an ordinary file system (ext4, xfs, btrfs, tmpfs) that belongs to you; "
    "until then benches are copies, which is slower and otherwise the same"
)
GROUPS = (
    "optional: run Pawl as root, or under `systemd-run --user --scope`, for limits that the kernel enforces at once"
)

_BY_COMPLAINT = (
    ("unknown option", INSTALL_BUBBLEWRAP),
    ("seccomp", ALLOW_FILTERS),
    ("mount proc", SHOW_PROC),
    ("max_user_namespaces", SHOW_PROC),
    ("namespace", ALLOW_NAMESPACES),
    ("uid map", ALLOW_NAMESPACES),
    ("rtm_newaddr", ALLOW_NAMESPACES),
    ("unshare", ALLOW_NAMESPACES),
    ("operation not permitted", ALLOW_NAMESPACES),
    ("permission denied", ALLOW_NAMESPACES),
)


def remedy_for(complaint: str) -> str:
    """The remedy for what bubblewrap or unshare said."""
    said = complaint.lower()
    for words, remedy in _BY_COMPLAINT:
        if words in said:
            return remedy
    return "run `pawl doctor` to see what this machine lacks"
