"""File operations under a deadline, and what the operating system says in the words of the error tree."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest
from folder import FolderFiles

from pawl.agent.tools.tool_registry import from_os_error
from pawl.agent.tools.toolbox import TimedFiles
from pawl.core.errors import PawlError, TimedOut


class StuckFiles(FolderFiles):
    """A disk that does not answer until it is let go."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.begun = threading.Event()
        self.released = threading.Event()

    def write(self, path: str, data: bytes) -> None:
        if not self.released.is_set():
            self.begun.set()
            self.released.wait()
        super().write(path, data)


class StrayFiles(FolderFiles):
    def read(self, path: str) -> bytes:
        raise PawlError(f"no {path}", advice="none")


def test_operations_in_time_do_what_the_files_do(workspace: Path):
    files = TimedFiles(lambda: FolderFiles(workspace), seconds=5.0)
    files.write("new.txt", b"x")
    assert files.read("new.txt") == b"x"
    assert files.exists("new.txt")
    assert "new.txt" in tuple(files.walk())
    files.delete("new.txt")
    assert not files.exists("new.txt")


def test_files_are_opened_by_the_caller_before_the_time_counts(workspace: Path):
    openers: list[str] = []

    def opened() -> FolderFiles:
        openers.append(threading.current_thread().name)
        return FolderFiles(workspace)

    files = TimedFiles(opened, seconds=5.0)
    files.write("new.txt", b"x")
    files.delete("new.txt")
    assert set(openers) == {threading.current_thread().name} and tuple(files.walk())


def test_errors_come_through_as_they_are(workspace: Path):
    with pytest.raises(FileNotFoundError):
        TimedFiles(lambda: FolderFiles(workspace), seconds=5.0).read("absent")
    with pytest.raises(PawlError, match="no absent"):
        TimedFiles(lambda: StrayFiles(workspace), seconds=5.0).read("absent")


@pytest.mark.spec("A11")
def test_an_operation_that_takes_too_long_is_reported_and_what_waits_behind_it_is_cancelled(workspace: Path):
    stuck = StuckFiles(workspace)
    files = TimedFiles(lambda: stuck, seconds=1.0)
    try:
        with pytest.raises(TimedOut, match=r"writing 'a\.txt' took longer than 1 s; .* may still take effect"):
            files.write("a.txt", b"late")
        assert stuck.begun.is_set()
        with pytest.raises(TimedOut, match=r"writing 'b\.txt' was cancelled"):
            files.write("b.txt", b"never")
    finally:
        stuck.released.set()
    settled = TimedFiles(lambda: stuck, seconds=30.0)
    settled._worker = files._worker
    # The queue is in order, so this read begins after the late write has ended.
    assert settled.read("a.txt") == b"late"
    assert not (workspace / "b.txt").exists()


@pytest.mark.spec("A5")
@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, "disk_full"),
        (errno.EDQUOT, "disk_full"),
        (errno.EACCES, "permission_denied"),
        (errno.EPERM, "permission_denied"),
        (errno.EROFS, "permission_denied"),
        (errno.ENOENT, "not_found"),
        (errno.EEXIST, "already_there"),
        (errno.EISDIR, "not_a_file"),
        (errno.ENXIO, "not_a_file"),
        (errno.ELOOP, "path_refused"),
        (errno.ENAMETOOLONG, "path_refused"),
        (errno.ETIMEDOUT, "timed_out"),
        (errno.EIO, "tool_error"),
    ],
)
def test_an_error_number_has_a_name_of_its_own_and_advice(number: int, code: str):
    error = from_os_error(OSError(number, os.strerror(number), "some/file"))
    assert error.code == code
    assert "'some/file'" in error.message and error.advice


def test_an_error_without_a_file_or_with_one_of_bytes_is_told_too():
    assert from_os_error(OSError(errno.ENOSPC, "full")).message == "there is no room to write"
    assert "'a\\udcff'" in from_os_error(OSError(errno.ENOENT, "gone", b"a\xff")).message
    assert from_os_error(OSError("odd")).message == "odd"


@pytest.mark.spec("A5")
def test_real_refusals_of_the_system_are_told_by_name(workspace: Path):
    (workspace / "loop").symlink_to("loop")
    for path, code in {
        "absent": "not_found",
        "src": "not_a_file",
        "README.md/x": "not_a_file",
        "loop": "path_refused",
        "x" * 300: "path_refused",
    }.items():
        with pytest.raises(OSError) as caught:
            FolderFiles(workspace).read(path)
        assert from_os_error(caught.value).code == code


def test_their_thread_ends_with_them_and_holds_nothing_of_what_it_did(workspace: Path):
    files, before = TimedFiles(lambda: FolderFiles(workspace), seconds=5.0), set(threading.enumerate())
    files.write("new.txt", b"x")
    (worker,) = set(threading.enumerate()) - before
    del files
    worker.join(10)
    assert not worker.is_alive()
