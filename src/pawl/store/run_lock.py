"""One process at a time carries a run; the kernel frees it with its owner."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pawl.settings.files import acquire


@contextmanager
def run_lock(path: Path, seconds: float) -> Iterator[None]:
    """Holds the run that the file is named after; `StoreBusy` while another one does. Without time it makes no file."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    while True:
        fd = os.open(path, os.O_RDWR | (os.O_CREAT if seconds else 0) | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            acquire(fd, f"is working on the run {path.stem}", seconds)
            if os.fstat(fd).st_nlink:  # Else its holder has ended meanwhile, and took the file away.
                try:
                    yield
                finally:
                    path.unlink(missing_ok=True)
                return
        finally:
            os.close(fd)
