"""The entry of the `pawl` command. Nothing is imported before it is needed: starting is free."""

from __future__ import annotations

import atexit
import os
import stat
import sys
import time


def program() -> int:
    """The whole process. What the system frees at once is not taken apart first, which takes a tenth of a second."""
    ended: list[int] = []
    # Registered first it is called last: after all threads and whatever else ends with the process.
    atexit.register(lambda: os._exit(ended[0]) if ended else None)
    ended.append(main())
    return ended[0]


def main() -> int:
    # What is loaded until a command begins is part of the time that it has.
    started = time.monotonic()
    try:
        _open_streams()
        code = _answer(sys.argv[1:], started)
    except (KeyboardInterrupt, RuntimeError) as error:
        # Before Python 3.12 what is raised while a class is made comes as the cause of another error.
        if not isinstance(error, KeyboardInterrupt) and not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        sys.stderr.write("pawl: interrupted\n")
        return 130
    except OSError as error:
        return _without_output(error)
    return _flushed(code)


def _flushed(code: int) -> int:
    """Flushes the output now: at exit Python would put its own exit code in the place of ours."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError as error:
        if code == 0:
            return _without_output(error)
        _lead_nowhere(1, 2)
    return code


def _answer(arguments: list[str], started: float) -> int:
    if arguments in (["--version"], ["-V"]):
        from pawl.core import __version__

        sys.stdout.write(f"pawl {__version__}\n")
        return 0
    if arguments in (["--help"], ["-h"], ["help"]) or (not arguments and not _has_input()):
        from pawl.ui.cli.overview import overview

        sys.stdout.write(overview())
        return 0
    import gc

    # What is loaded stays: looked through every 700 new objects it takes a tenth of the time until the first request.
    gc.set_threshold(150_000)
    from pawl.ui.cli.main import run

    return run(arguments, started)


def _has_input() -> bool:
    """Whether somebody says something: at a terminal, through a pipe, or in a file."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):
        return False
    if stat.S_ISFIFO(mode) or stat.S_ISREG(mode):
        return bool(sys.stdin.buffer.peek(1))  # type: ignore[union-attr]
    return sys.stdin.isatty()


def _open_streams() -> None:
    """Streams that whoever started us has closed lead nowhere; characters that cannot be shown are written out."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            while os.open(os.devnull, os.O_RDWR) < number:
                pass
            stream = open(number, "w" if number else "r", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
        stream.reconfigure(errors="backslashreplace" if number else "replace")


def _without_output(error: OSError) -> int:
    """The output cannot be written: its reader went away, as `head` does, or the disk is full."""
    if isinstance(error, BrokenPipeError):
        _lead_nowhere(1, 2)
        return 141
    _lead_nowhere(1)
    sys.stderr.write(f"pawl: the output cannot be written: {error.strerror}\n")
    return 1


def _lead_nowhere(*streams: int) -> None:
    """Python would complain once more when it flushes at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        os.dup2(nowhere, stream)


if __name__ == "__main__":
    sys.exit(program())
