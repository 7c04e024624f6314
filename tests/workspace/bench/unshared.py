"""A sandbox that shows a view at the workspace's own path by real mounts, and confines nothing else."""

from __future__ import annotations

import os
import subprocess
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
from pawl.sandbox.cancel import CancelToken

OVERLAY = r"""
lower=$(escaped "$1"); [ -z "$5" ] || lower="$(escaped "$5"):$lower"
folders="lowerdir=$lower,upperdir=$(escaped "$2"),workdir=$(escaped "$3")"
mount -t overlay overlay -o "$folders,userxattr" "$4" || exit 111
mount --bind "$4" "$1" || exit 112
shift 5
"""
COPY = r"""
mount --bind "$2" "$1" || exit 112
shift 2
"""
REST = r"""
cd "$1" || exit 113
shift
exec "$@"
"""
ESCAPED = r"""escaped() { printf '%s' "$1" | sed 's/[\\,:]/\\&/g'; }"""


@dataclass
class UnsharedSandbox:
    overlay: bool = True
    """Whether overlays can be mounted here."""

    def run(
        self,
        view: View,
        execution: Execution,
        *,
        on_output: Callable[[Stream, bytes], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> Completed:
        del cancel
        if isinstance(view, OverlayView):
            if not self.overlay:
                raise OverlayUnavailable("overlays are switched off in this test")
            folders, script = [view.workspace, view.upper, view.work, view.merged, view.masks], ESCAPED + OVERLAY
        else:
            folders, script = [view.workspace, view.copy], COPY
        directory = os.path.join(view.workspace, execution.directory)
        done = subprocess.run(
            ["unshare", "-Urm", "sh", "-c", script + REST, "sh", *folders, directory, *execution.argv],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **execution.environment},
            check=False,
        )
        assert done.returncode not in range(111, 114), done.stderr
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
