"""Ways to other processes: their environment, memory, terminals and open files, and to more privileges."""

from __future__ import annotations

import json
import os
import pty
import select

import pytest
from sandbox.site import DRIVER, PROBE, PYTHON, denied

pytestmark = [pytest.mark.hostile, pytest.mark.spec("F4")]

KEY = "CANARY-KEY-7f3a"


@pytest.mark.attack("A25")
def test_no_key_of_the_callers_environment_can_be_read(any_site):
    own, others = any_site.probe(("environment",), ("every_environ",), env={"API_KEY": KEY})
    assert KEY not in json.dumps([own, others])
    assert "API_KEY" not in own
    answer = any_site.shell("env; cat /proc/self/environ /proc/*/environ", env={"API_KEY": KEY})
    assert KEY not in answer["stdout"]["text"]
    assert KEY in json.dumps(any_site.probe_bare(("environment",), env={"API_KEY": KEY}))


@pytest.mark.attack("A25")
def test_words_of_the_environment_do_not_stand_on_any_command_line(site):
    script = "echo $CANARY; exec sleep 300"
    with site.started(site.order("sh", "-c", script, environment={"CANARY": KEY}, announce="1")) as process:
        seen = b""
        while KEY.encode() not in seen:
            data = os.read(process.stderr.fileno(), 4096)
            assert data
            seen += data
        lines = b""
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    lines += file.read()
            except OSError:
                continue
    assert b"bwrap\x00--args" in lines
    assert KEY.encode() not in lines


@pytest.mark.attack("A27")
def test_the_agent_itself_is_out_of_reach(any_site):
    attempts = [("kill_process", "{pid}"), ("trace_process", "{pid}"), ("read_memory", "{pid}")]
    argv = (PYTHON, "-I", "-c", PROBE, json.dumps(attempts))
    answers = json.loads(any_site.run(*argv)["stdout"]["text"])
    assert denied(answers), answers
    assert any_site.probe_bare(("kill_process", str(os.getpid())))[0] == (
        "allowed" if any_site.user.uid == os.getuid() else "denied EPERM"
    )


CALLS = ("bpf", "io_uring_setup", "keyctl", "add_key", "userfaultfd", "perf_event_open", "setns", "open_by_handle_at")


@pytest.mark.attack("A28")
def test_no_new_namespace_and_no_kernel_machinery(any_site):
    answers = any_site.probe(
        ("unshare", "10000000"),
        ("unshare", "20000"),
        ("clone_namespace",),
        *[("system_call", name) for name in CALLS],
        ("make_device",),
    )
    assert answers[:-1] == ["denied EPERM"] * (len(CALLS) + 3)
    assert denied(answers[-1:])
    assert any_site.probe(("system_call", "clone3")) == ["denied ENOSYS"]


TERMINAL = """\
import fcntl, os, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
"""


@pytest.mark.attack("A29")
def test_nothing_can_be_typed_into_the_users_terminal(any_site):
    """The agent runs in a terminal; what would be typed into it could be read from it."""
    master, slave = pty.openpty()
    attempts = [("type_into_terminal", "/dev/tty"), ("type_into_terminal", os.ttyname(slave))]
    order = any_site.order(PYTHON, "-I", "-c", PROBE, json.dumps(attempts))
    answer = any_site.folder / "answer"
    code = f"{TERMINAL}orders = {json.dumps([order])!r}\n" + DRIVER.replace("sys.stdin.readline()", "orders").replace(
        "sys.stdout.write(", f"open({str(answer)!r}, 'w').write("
    )
    process = any_site.user.start_python(code, home=any_site.folder, stdin=slave, stdout=slave, stderr=slave)
    try:
        assert process.wait(60) == 0, os.read(master, 4096)
        tried = json.loads(json.loads(answer.read_text())[0]["stdout"]["text"])
        assert denied(tried), tried
        os.write(master, b"end\n")
        assert os.read(slave, 100) == b"end\n"
        assert select.select([slave], [], [], 0)[0] == []
    finally:
        os.close(master)
        os.close(slave)


@pytest.mark.attack("A37")
def test_no_program_gives_more_privileges(any_site):
    copy, become_root = any_site.probe(("setuid_copy",), ("become_root",))
    assert copy == {"effective": any_site.user.uid, "no new privileges": 1}
    (held,) = any_site.probe(("capabilities",))
    assert not any(held[:6])
    # An ordinary user cannot shrink the bounding set without a namespace; what is not permitted cannot come from it.
    assert not any(held[6:]) or (any_site.kind, any_site.user.name) == ("landlock", "ordinary")
    if any_site.user.uid != 0:
        assert become_root["su"] != 0
        assert become_root["sudo"] != 0


@pytest.mark.attack("A38")
@pytest.mark.parametrize("network", ["off", "on"])
def test_only_the_three_standard_files_are_open_inside(any_site, network):
    secret = any_site.folder / "secret"
    secret.write_text("CANARY")
    any_site.user.own(any_site.folder)
    any_site.prelude = f"import os\nos.dup2(os.open({str(secret)!r}, os.O_RDONLY), 77, inheritable=True)\n"
    assert any_site.probe(("open_files",), network=network) == [[0, 1, 2]]
    assert any_site.shell("readlink /proc/self/fd/0")["stdout"]["text"] == "/dev/null\n"
    assert any_site.probe(("open_files",), network=network, given="x") == [[0, 1, 2]]


def test_a_command_reads_what_it_is_given_whole_and_may_leave_it(any_site):
    long = "0123456789" * 30_000
    assert any_site.run("wc", "-c", given=long)["stdout"]["text"].strip() == str(len(long))
    assert any_site.run("true", given=long)["code"] == 0
    assert any_site.shell("read -r one; cat", given="1\n2\n")["stdout"]["text"] == "2\n"
