"""Ways to use up the machine, and to live on after the command."""

from __future__ import annotations

import os
import signal
import uuid

import pytest
from sandbox.site import PYTHON, processes_with, until

from pawl.sandbox.process_limits import find_hierarchy

pytestmark = [pytest.mark.hostile, pytest.mark.spec("F4")]

FORKS = """\
import os, signal
children, refused = [], 0
for _ in range(300):
    try:
        pid = os.fork()
    except BlockingIOError:
        refused += 1
        continue
    if pid == 0:
        signal.pause()
    children.append(pid)
print(len(children), refused, flush=True)
"""


def kernel_counts_processes(site) -> bool:
    """Whether the kernel itself refuses one process too many: for an ordinary user in a namespace, or in a group."""
    if site.user.uid != 0:
        return site.kind == "namespaces"
    hierarchy = find_hierarchy()
    return hierarchy is not None and "pids" in hierarchy.folders


@pytest.mark.attack("A30")
def test_a_fork_bomb_meets_its_limit(any_site):
    answer = any_site.run(PYTHON, "-c", FORKS, limits={"processes": 64})
    if kernel_counts_processes(any_site):
        started, refused = map(int, answer["stdout"]["text"].split())
        assert (answer["ending"], answer["code"]) == ("exited", 0)
        assert 55 <= started <= 66
        assert started + refused == 300
    else:
        assert answer["ending"] == "process limit"
        assert "64 processes" in answer["notices"][-1]


@pytest.mark.attack("A30")
def test_many_threads_are_many_processes(site):
    code = """\
import threading
stop = threading.Event()
try:
    for count in range(300):
        threading.Thread(target=stop.wait, daemon=True).start()
except RuntimeError:
    print(count, flush=True)
stop.set()
"""
    answer = site.run(PYTHON, "-c", code, limits={"processes": 64})
    if kernel_counts_processes(site):
        assert 50 <= int(answer["stdout"]["text"]) <= 66
    else:
        assert answer["ending"] == "process limit"


HOGS = """\
import os, signal
for _ in range(4):
    if os.fork() == 0:
        block = os.urandom(4096) * (200 << 8)
        print("filled", flush=True)
        signal.pause()
signal.pause()
"""


@pytest.mark.attack("A31")
def test_the_memory_limit_is_one_for_the_whole_tree(any_site):
    answer = any_site.run(PYTHON, "-c", HOGS, limits={"memory_bytes": 256 << 20, "seconds": 60})
    assert (answer["ending"], answer["code"], answer["signal"]) == ("memory limit", None, None)
    assert str(256 << 20) in answer["notices"][-1]


@pytest.mark.attack("A31")
def test_one_process_cannot_take_more_than_the_limit_at_once(any_site):
    code = "block = bytearray(1 << 30)"
    answer = any_site.run(PYTHON, "-c", code, limits={"memory_bytes": 256 << 20})
    assert answer["code"] == 1
    assert "MemoryError" in answer["stderr"]["text"]


@pytest.mark.attack("A31")
def test_memory_shared_by_forks_is_counted_once(site):
    code = """\
import os, signal, time
block = os.urandom(4096) * (100 << 8)
children = []
for _ in range(6):
    pid = os.fork()
    if pid == 0:
        signal.pause()
    children.append(pid)
deadline = time.monotonic() + 0.5
while time.monotonic() < deadline:
    pass
for pid in children:
    os.kill(pid, signal.SIGKILL)
print("shared")
"""
    answer = site.run(PYTHON, "-c", code, limits={"memory_bytes": 300 << 20})
    assert (answer["ending"], answer["stdout"]["text"]) == ("exited", "shared\n")


@pytest.mark.attack("A32")
def test_the_temporary_folder_is_bounded(site):
    answer = site.shell(
        "dd if=/dev/zero of=/tmp/big bs=1M count=10000; stat -c %s /tmp/big", limits={"scratch_bytes": 16 << 20}
    )
    assert "No space left" in answer["stderr"]["text"]
    assert int(answer["stdout"]["text"]) <= 16 << 20


@pytest.mark.attack("A32")
def test_one_file_is_bounded(any_site):
    answer = any_site.shell("dd if=/dev/zero of=big bs=1M count=10000; echo $?", limits={"file_bytes": 8 << 20})
    assert int(answer["stdout"]["text"]) == 128 + signal.SIGXFSZ
    assert (any_site.upper / "big").stat().st_size == 8 << 20


@pytest.mark.attack("A32")
def test_many_files_together_are_bounded(any_site):
    script = "i=0; while :; do i=$((i+1)); dd if=/dev/zero of=file$i bs=1M count=4 2>/dev/null; done"
    answer = any_site.shell(script, limits={"disk_bytes": 32 << 20, "seconds": 60})
    assert answer["ending"] == "disk limit"
    assert sum(path.stat().st_size for path in any_site.upper.glob("file*")) < 2 << 30


NAMELESS = """\
import os
files = []
while True:
    files.append(open("file", "wb"))
    os.unlink("file")
    files[-1].write(bytes(4 << 20))
    files[-1].flush()
"""


@pytest.mark.attack("A32")
def test_files_without_a_name_are_bounded_too(any_site):
    answer = any_site.run(PYTHON, "-c", NAMELESS, limits={"disk_bytes": 32 << 20, "seconds": 60})
    assert answer["ending"] == "disk limit"


@pytest.mark.attack("A32")
def test_what_the_bench_held_before_does_not_count_against_the_next_command(my_site):
    script = "i=0; while [ $i -lt 12 ]; do i=$((i+1)); dd if=/dev/zero of=file$i bs=1M count=1; done 2>/dev/null"
    first, second = my_site.run_all(
        my_site.order("sh", "-c", script),
        my_site.order("sh", "-c", "sleep 2.5", limits={"disk_bytes": 1 << 20}),
    )
    assert (first["code"], second["ending"]) == (0, "exited")


@pytest.mark.attack("A32")
def test_there_is_no_other_place_to_fill(site):
    folders = ("/", "/dev", "/run", "/etc", "/home", "/proc/self", "/var")
    answers = site.shell_all(*[f"head -c 10 /dev/zero > {folder}/fill" for folder in folders])
    assert [answer["code"] == 0 for answer in answers] == [False] * len(folders)


@pytest.mark.attack("A33")
def test_endless_output_is_bounded(any_site_of_mine):
    """Many lines, and one line without an end."""
    for answer in any_site_of_mine.shell_all(
        "yes", "tr '\\0' x < /dev/zero", limits={"seconds": 1, "output_bytes": 1 << 20}
    ):
        assert answer["ending"] == "timed out"
        assert answer["stdout"]["total"] > 10 << 20
        assert answer["stdout"]["dropped"] == answer["stdout"]["total"] - (1 << 20)
        assert "bytes left out" in answer["stdout"]["text"]
        assert answer["resident"] < 100 << 20


@pytest.mark.attack("A33")
def test_endless_output_can_be_cancelled(any_site):
    answer = any_site.shell("echo STOP-HERE; yes", cancel_on="STOP-HERE", limits={"seconds": 60})
    assert answer["ending"] == "cancelled"
    assert answer["seconds"] < 30


def daemons(word: str) -> str:
    """Two that leave the session, one of them without a living parent; both are up when the script goes on."""
    first, second = (f"sh -c ': > up{number}; while :; do sleep 1; done' {word}" for number in (1, 2))
    return f"setsid {first} & (setsid {second} &); while [ ! -e up1 ] || [ ! -e up2 ]; do :; done"


ENDINGS = {
    "finishes": ("echo done", {}, "exited"),
    "runs out of time": ("sleep 9999", {"limits": {"seconds": 1.5}}, "timed out"),
    "is cancelled": ("echo STOP-HERE; sleep 9999", {"cancel_on": "STOP-HERE"}, "cancelled"),
}


@pytest.mark.attack("A34")
@pytest.mark.parametrize("how", list(ENDINGS))
def test_nothing_survives_when_the_command(any_site, how):
    last, options, ending = ENDINGS[how]
    word = f"daemon-{uuid.uuid4().hex}"
    answer = any_site.shell(f"{daemons(word)}; {last}", word=word, **options)
    assert (answer["ending"], answer["alive"]) == (ending, []), answer
    assert until(lambda: not processes_with(word))
    # Far above any time it takes and below the patience with which a tree that does not die is waited for.
    assert answer["seconds"] < 8


@pytest.mark.attack("A34")
def test_a_daemon_that_holds_the_pipe_does_not_hold_up_the_answer(any_site):
    word = f"daemon-{uuid.uuid4().hex}"
    answer = any_site.shell(f"setsid sh -c 'while :; do sleep 1; done' {word} & echo done")
    assert (answer["ending"], answer["stdout"]["text"]) == ("exited", "done\n")
    assert answer["seconds"] < 20
    assert until(lambda: not processes_with(word))


CROWD = """\
import os, signal, sys
for number in range(100):
    if os.fork() == 0:
        os.setsid()
        os.dup2(0, 1)
        os.dup2(0, 2)
        block = bytearray(4 << 20)
        with open(f"up{number}", "w"):
            pass
        signal.pause()
while not all(os.path.exists(f"up{number}") for number in range(100)):
    pass
"""


@pytest.mark.attack("A34")
def test_a_crowd_is_gone_before_the_answer_comes(any_site):
    """So that nobody writes to the bench any more when it is read."""
    word = f"crowd-{uuid.uuid4().hex}"
    answer = any_site.run(PYTHON, "-c", CROWD, word, word=word)
    assert (answer["ending"], answer["code"], answer["alive"]) == ("exited", 0, [])


@pytest.mark.attack("A35")
def test_nothing_survives_the_death_of_the_agent(any_site):
    word = f"daemon-{uuid.uuid4().hex}"
    order = any_site.order("sh", "-c", f"{daemons(word)}; echo STARTED; sleep 9999", announce="1")
    with any_site.started(order) as process:
        assert os.read(process.stderr.fileno(), 100) == b"STARTED\n"
        assert processes_with(word)
        process.kill()
        process.wait()
        assert until(lambda: not processes_with(word))
    assert until(lambda: not list((any_site.folder / "temporary").iterdir()))


@pytest.mark.attack("A35")
@pytest.mark.parametrize("when", ["sent", "spawned"])
def test_a_command_never_starts_when_the_agent_dies_before_it_is_up(any_site, when):
    """The agent is killed at the gate: nothing has run and nothing stays behind."""
    word = f"daemon-{uuid.uuid4().hex}"
    hook = "release" if when == "sent" else "wait_until_up"
    any_site.prelude = f"""\
import os, signal
import pawl.sandbox.process as launched
def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)
launched.Launched.{hook} = die
"""
    with any_site.started(any_site.order("sh", "-c", f": {word}; echo ran > ran")) as process:
        assert process.wait(60) == -signal.SIGKILL
    assert until(lambda: not processes_with(word))
    assert not (any_site.upper / "ran").exists()


TIMED_DEATH = """\
import os, signal, threading
import pawl.sandbox.process as launched
def start_process(*arguments, original=launched.start_process):
    threading.Timer({seconds}, os.kill, (os.getpid(), signal.SIGKILL)).start()
    return original(*arguments)
launched.start_process = start_process
"""


def die_after(site, milliseconds: int) -> None:
    """The agent is killed so long after it started the sandbox; nothing stays behind, whatever was going on."""
    word = f"moment-{uuid.uuid4().hex}"
    site.prelude = TIMED_DEATH.format(seconds=milliseconds / 1000)
    with site.started(site.order("sh", "-c", "while :; do sleep 1; done", word)) as process:
        assert process.wait(60) == -signal.SIGKILL
    assert until(lambda: not processes_with(word)), milliseconds


@pytest.mark.attack("A35")
def test_the_agent_may_die_at_a_few_moments_of_the_start(any_site):
    for milliseconds in (1, 7, 15, 40):
        die_after(any_site, milliseconds)


@pytest.mark.slow
@pytest.mark.attack("A35")
def test_the_agent_may_die_at_any_moment_of_the_start(any_site):
    for milliseconds in range(60):
        die_after(any_site, milliseconds)
