"""A sandbox that shows a view at the workspace's own path by real mounts, and confines nothing else."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass

from pawl.core.errors import OverlayUnavailable
from pawl.core.execution import (
    Captured,
    Completed,
    Confinement,
    Ending,
    Execution,
    OverlayView,
    Protection,
    Stream,
    View,
)
from pawl.core.ports import Cancel

OVERLAY = r"""
folders="lowerdir=$(escaped "$1"),upperdir=$(escaped "$2"),workdir=$(escaped "$3")"
mount -t overlay overlay -o "$folders,userxattr" "$4" || exit 111
mount --bind "$4" "$1" || exit 112
shift 4
"""
COPY = r"""
mount --bind "$2" "$1" || exit 112
shift 2
"""
REST = r"""
empty="$1"; directory="$2"; shift 2
cd "$directory" || exit 113
while [ "$1" != -- ]; do mount --bind "$empty" "$1" || exit 114; shift; done
shift
exec "$@"
"""
ESCAPED = r"""escaped() { printf '%s' "$1" | sed 's/[\\,:]/\\&/g'; }"""


@dataclass
class UnsharedSandbox:
    overlay: bool = True
    """Whether overlays can be mounted here."""
    broken: tuple[str, ...] = ()
    """Folders below which they cannot."""

    def run(
        self,
        view: View,
        execution: Execution,
        *,
        on_output: Callable[[Stream, bytes], None] | None = None,
        cancel: Cancel | None = None,
    ) -> Completed:
        del cancel
        if isinstance(view, OverlayView):
            if not self.overlay or view.upper.startswith(self.broken):
                raise OverlayUnavailable("overlays are switched off in this test")
            folders, script = [view.workspace, view.upper, view.work, view.merged], ESCAPED + OVERLAY
        else:
            folders, script = [view.workspace, view.copy], COPY
        directory = os.path.join(view.workspace, execution.directory)
        with tempfile.NamedTemporaryFile() as empty:
            words = [*folders, empty.name, directory, *execution.hidden, "--", *execution.argv]
            done = subprocess.run(
                ["unshare", "-Urm", "sh", "-c", script + REST, "sh", *words],
                capture_output=True,
                stdin=subprocess.DEVNULL,
                env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **execution.environment},
                check=False,
            )
        assert done.returncode not in range(111, 115), done.stderr
        if on_output is not None:
            on_output(Stream.STDOUT, done.stdout)
        return Completed(
            ending=Ending.EXITED,
            code=done.returncode,
            stdout=Captured(head=done.stdout, total=len(done.stdout)),
            stderr=Captured(head=done.stderr, total=len(done.stderr)),
        )

    def protection(self) -> Protection:
        return Protection(confinement=Confinement.NONE, overlay=self.overlay)
