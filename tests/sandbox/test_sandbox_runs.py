"""How commands end, what is kept of their output, and how they are found."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import uuid

import pytest
from sandbox.site import PYTHON, processes_with, until

from pawl.core.errors import CommandNotFound, UsageError
from pawl.core.execution import Captured, CopyView, Ending, Execution, Limits, Stream
from pawl.sandbox.cancel import CancelToken
from pawl.sandbox.namespaces import NamespaceSandbox
from pawl.sandbox.visibility import Surroundings

pytestmark = pytest.mark.spec("F4")


@pytest.fixture
def sandbox(tmp_path):
    return NamespaceSandbox(Surroundings(home=str(tmp_path)))


@pytest.fixture
def view(tmp_path):
    workspace = tmp_path.resolve() / "workspace"
    workspace.mkdir()
    return CopyView(workspace=str(workspace), copy=str(workspace))


ENDINGS = {
    "true": ("exited", 0, None),
    "exit 7": ("exited", 7, None),
    "exit 97": ("exited", 97, None),
    "exit 125": ("exited", 125, None),
    "exit 255": ("exited", 255, None),
    "kill -9 $$": ("signalled", None, signal.SIGKILL),
    "kill -SEGV $$": ("signalled", None, signal.SIGSEGV),
}


def test_an_ending_is_told_as_it_was(any_site):
    answers = zip(ENDINGS, any_site.shell_all(*ENDINGS), strict=True)
    assert {script: (got["ending"], got["code"], got["signal"]) for script, got in answers} == ENDINGS


def test_output_comes_live_and_both_streams_are_kept_apart(sandbox, view):
    seen = []
    completed = sandbox.run(
        view, Execution(argv=("sh", "-c", "echo one; echo two >&2")), on_output=lambda *piece: seen.append(piece)
    )
    assert (completed.stdout, completed.stderr) == (Captured(head=b"one\n", total=4), Captured(head=b"two\n", total=4))
    assert sorted(seen) == [(Stream.STDERR, b"two\n"), (Stream.STDOUT, b"one\n")]


def test_the_middle_of_long_output_is_left_out(sandbox, view):
    limits = Limits(output_bytes=10)
    completed = sandbox.run(view, Execution(argv=("printf", "abcdefghijklmnopqrstuvwxyz"), limits=limits))
    assert completed.stdout == Captured(head=b"abcde", tail=b"vwxyz", total=26)
    assert completed.stdout.dropped == 16


def test_a_command_has_nothing_to_read_and_no_terminal(sandbox, view):
    completed = sandbox.run(view, Execution(argv=("sh", "-c", "cat; test -t 0 || echo none; : < /dev/tty")))
    assert completed.stdout.head == b"none\n"
    assert completed.code != 0


def test_the_time_limit_ends_a_command(sandbox, view):
    completed = sandbox.run(view, Execution(argv=("sleep", "60"), limits=Limits(seconds=0.3)))
    assert (completed.ending, completed.code) == (Ending.TIMED_OUT, None)
    assert completed.notices == ("stopped after 0.3 s",)


def test_a_request_to_stop_from_another_thread_ends_a_command(sandbox, view):
    cancel = CancelToken()
    threading.Timer(0.2, cancel.request).start()
    completed = sandbox.run(view, Execution(argv=("sleep", "60")), cancel=cancel)
    assert (completed.ending, completed.code) == (Ending.CANCELLED, None)
    assert cancel.requested


def test_a_request_made_before_the_start_starts_nothing(sandbox, view):
    cancel = CancelToken()
    cancel.request()
    completed = sandbox.run(view, Execution(argv=("touch", "ran")), cancel=cancel)
    assert completed.ending is Ending.CANCELLED
    assert not os.path.exists(os.path.join(view.copy, "ran"))
    cancel.close()
    cancel.request()


def test_the_time_of_a_token_counts_from_when_it_was_asked_for():
    now = time.monotonic()
    late, early = CancelToken(seconds=60, since=now - 61), CancelToken(seconds=60, since=now)
    assert late.timed_out and not early.timed_out
    assert CancelToken(above=late, seconds=600).timed_out


def test_an_error_in_the_listener_ends_the_command(sandbox, view):
    word = f"listened-{uuid.uuid4().hex}"
    alive = []

    def fail(stream, data):
        alive.extend(processes_with(word))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sandbox.run(view, Execution(argv=("sh", "-c", "echo x; sleep 300; :", word)), on_output=fail)
    assert alive
    assert until(lambda: not processes_with(word))


def test_commands_run_side_by_side_with_their_own_limits(sandbox, view):
    """Each allocates what only its own limit allows or forbids."""
    code = "import sys; block = bytearray(200 << 20); print('fits')"
    answers = {}

    def run(size):
        limits = Limits(memory_bytes=size << 20)
        answers[size] = sandbox.run(view, Execution(argv=(PYTHON, "-c", code), limits=limits))

    threads = [threading.Thread(target=run, args=(size,)) for size in (100, 1000, 150, 2000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {size: answer.ok for size, answer in answers.items()} == {100: False, 150: False, 1000: True, 2000: True}


def test_no_file_and_no_process_is_left_open(sandbox, view):
    sandbox.run(view, Execution(argv=("true",)))
    before = os.listdir("/proc/self/fd")
    for _ in range(5):
        sandbox.run(view, Execution(argv=("true",)))
    assert os.listdir("/proc/self/fd") == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_memory_that_was_used_is_reported(sandbox, view):
    code = "import time; block = b'x' * (100 << 20); end = time.monotonic() + 0.2\nwhile time.monotonic() < end: pass"
    completed = sandbox.run(view, Execution(argv=(PYTHON, "-c", code)))
    assert 100 << 20 < completed.peak_memory_bytes < 300 << 20


def test_an_unknown_program_is_named_with_those_that_look_like_it(sandbox, view):
    with pytest.raises(CommandNotFound) as error:
        sandbox.run(view, Execution(argv=("gitt", "status")))
    assert error.value.message == "no program 'gitt' on the PATH '/usr/local/bin:/usr/bin:/bin'"
    assert "git" in error.value.advice


@pytest.mark.parametrize("name", ["./missing", "/nowhere/tool", "missing/tool"])
def test_an_unknown_path_is_named(sandbox, view, name):
    with pytest.raises(CommandNotFound, match=name):
        sandbox.run(view, Execution(argv=(name,)))


def test_a_program_that_only_this_machine_has_is_not_there_inside(sandbox, view, tmp_path):
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    with pytest.raises(CommandNotFound):
        sandbox.run(view, Execution(argv=(str(tool),)))


def test_a_program_made_on_the_bench_is_found_there(site):
    site.shell(
        "mkdir bin; printf '#!/bin/sh\\necho made\\n' > bin/tool; chmod +x bin/tool; ln -s tool bin/link; rm kept.txt"
    )
    assert site.run("bin/tool")["stdout"]["text"] == "made\n"
    assert site.run("./link", directory="bin")["stdout"]["text"] == "made\n"
    assert site.run("./kept.txt")["error"] == "CommandNotFound"
    site.path = f"{site.workspace}/bin:/usr/bin"
    assert site.run("tool")["stdout"]["text"] == "made\n"


def test_a_file_that_is_no_program_says_so(my_site):
    answer = my_site.run("./kept.txt")
    assert answer["error"] == "PermissionDenied"
    assert "chmod +x" in answer["advice"]


@pytest.mark.parametrize(
    "execution",
    [
        Execution(argv=()),
        Execution(argv=("",)),
        Execution(argv=("echo", "a\0b")),
        Execution(argv=("true",), environment={"A=B": "1"}),
        Execution(argv=("true",), environment={"A": "x\0y"}),
        Execution(argv=("echo", "x" * (1 << 20))),
    ],
)
def test_what_no_process_can_be_started_with_is_refused(sandbox, view, execution):
    with pytest.raises(UsageError):
        sandbox.run(view, execution)


def test_words_reach_the_command_unchanged(any_site):
    words = ["-n", "a b", "$HOME", "`x`", "'", '"', "new\nline", "*", "\\", "", "ünï", "--"]
    code = "import json, sys; print(json.dumps(sys.argv[1:]))"
    answer = any_site.run(PYTHON, "-c", code, *words)
    assert json.loads(answer["stdout"]["text"]) == words
