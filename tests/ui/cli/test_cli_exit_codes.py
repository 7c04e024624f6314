"""The table of exit codes, each by a real way to it."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from ui.cli.console import PATIENCE, PAWL, Pawl

pytestmark = pytest.mark.spec("F5")


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("true", 0),
        ("exit 1", 1),
        ("exit 255", 255),
        ("kill -KILL $$", 137),
        ("kill -TERM $$", 143),
    ],
)
def test_a_run_ends_as_its_command_did(pawl: Pawl, script: str, code: int):
    assert pawl("run", "--", "sh", "-c", script).code == code


def test_a_signal_that_ended_the_command_is_named(pawl: Pawl):
    words = ["run", "--", "sh", "-c", "kill -KILL $$"]
    said, answer = pawl.many([words, ["--json", *words]])
    body = json.loads(answer.out)
    assert "note: the command was ended by signal 9 (SIGKILL)\n" in said.err
    assert (body["ending"], body["code"], body["signal"], body["exit_code"]) == ("signalled", None, 9, 137)


@pytest.mark.spec("A11", "F4")
def test_124_when_its_time_is_up(pawl: Pawl):
    said = pawl("run", "--seconds", "0.2", "--", "sh", "-c", "echo x > x; exec sleep 60")
    assert said.code == 124
    assert said.err.splitlines()[:3] == [
        "note: stopped after 0.2 s",
        "give it longer with --seconds N",
        "not promoted, kept as entry 1",
    ]


@pytest.mark.spec("A11", "F4")
def test_endless_output_is_stopped_by_the_time_limit_too(pawl: Pawl):
    done = subprocess.run(
        [*PAWL, "run", "--seconds", "0.5", "--", "yes"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=pawl.workspace,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, b"bytes of stdout" in done.stderr) == (124, True)


def test_127_when_there_is_no_such_command(pawl: Pawl):
    said, answer = pawl.many([[*words, "run", "--", "no-such-command"] for words in ([], ["--json"])])
    assert (said.code, said.out, answer.code) == (127, "", 127)
    assert said.err.startswith("pawl: no program 'no-such-command' on the PATH ")
    assert json.loads(answer.out)["error"] == "command_not_found"


def test_1_when_a_command_cannot_be_executed(pawl: Pawl):
    said = pawl("run", "--", "./README.md")
    assert (said.code, said.err.splitlines()[0]) == (1, "pawl: './README.md' is not executable")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("run_seconds = 'x'\nzzz = 1", "run_seconds must be a number, not 'x'; 'zzz' is not a setting"),
        ("preset = 'nope'", "no guardrail preset 'nope'"),
        ("memory_mb = 0", "memory_mb must be above 0, not 0"),
        ("= 1", "is not TOML"),
    ],
)
def test_52_when_the_settings_are_wrong(
    pawl: Pawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
):
    file = tmp_path / "config.toml"
    file.write_text(text)
    monkeypatch.setenv("PAWL_CONFIG", str(file))
    assert message in pawl.json("run", "--", "true", code=52)["message"]


def test_52_when_the_state_folder_is_not_absolute(pawl: Pawl, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PAWL_STATE", "state")
    assert pawl("history").code == 52


@pytest.mark.whole
def test_75_when_another_pawl_is_writing_and_nothing_is_lost(pawl: Pawl, state_directory: Path):
    locks = state_directory / "locks"
    locks.mkdir(mode=0o700)
    name = hashlib.sha256(os.fsencode(pawl.workspace)).hexdigest()[:24]
    with open(locks / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        said = pawl("run", "--apply", "--", "touch", "x")
    assert said.code == 75
    assert said.err.startswith("pawl: another Pawl (process ")
    assert "; what the command changed is kept: pawl promote 1\n" in said.err
    assert pawl("promote", "1").code == 0
    assert (pawl.workspace / "x").exists()


def test_44_when_there_is_no_sandbox_as_strong_as_the_settings_ask(
    pawl: Pawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A machine without bubblewrap, played by a mount over it that only these processes see."""
    bubblewrap = shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin")
    without = ["unshare", "-rm", "sh", "-c", 'mount --bind /dev/null "$0" && exec "$@"', str(bubblewrap)]
    if bubblewrap is None or subprocess.run([*without, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("bubblewrap cannot be hidden here")
    config = tmp_path / "config.toml"
    config.write_text("minimum_confinement = 'namespaces'\n")
    monkeypatch.setenv("PAWL_CONFIG", str(config))

    def ask(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*without, *PAWL, *words], cwd=pawl.workspace, capture_output=True, text=True, timeout=PATIENCE, check=False
        )

    refused = ask("run", "--", "true")
    assert (refused.returncode, refused.stdout) == (44, "")
    assert refused.stderr.startswith("pawl: bubblewrap is not installed\n      install bubblewrap")
    examined = ask("doctor")
    assert "  ✗ bubblewrap: not installed" in examined.stdout
    assert examined.stdout.count("apt install bubblewrap") == 1


@pytest.mark.spec("F4")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=["INT", "TERM", "HUP"]
)
def test_a_signal_stops_the_command_keeps_its_changes_and_clears_the_bench(
    pawl: Pawl, state_directory: Path, number: signal.Signals, code: int
):
    script = "echo x > x; echo ready; exec sleep 4321"
    with pawl.started("run", "--apply", "--", "sh", "-c", script, until="ready") as process:
        process.send_signal(number)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert b"not promoted, kept as entry 1\n  + x  +1" in err
    assert list((state_directory / "benches").iterdir()) == []
    assert subprocess.run(["pgrep", "-f", "sleep 4321"], capture_output=True, check=False).stdout == b""
    assert not (pawl.workspace / "x").exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"])
def test_a_signal_while_pawl_itself_works_ends_it_with_one_line(pawl: Pawl, number: signal.Signals, code: int):
    process = subprocess.Popen(
        [*PAWL, "patch", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=pawl.workspace,
    )
    _wait_until_it_reads(process)
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (code, b"")
    assert err.splitlines()[1:] == [b"      nothing was left half done"]


def _wait_until_it_reads(process: subprocess.Popen) -> None:
    """Until the process sleeps in a read of its input, as the kernel tells it."""
    while True:
        assert process.poll() is None
        system_call = Path(f"/proc/{process.pid}/syscall").read_text().split()
        if system_call[:2] == ["0", "0x0"]:
            return


def test_the_reader_of_a_pipe_may_leave(pawl: Pawl):
    pawl.applied("seq 1 200000 > many")
    for words in (["diff"], ["history"], ["--help"]):
        left = subprocess.run(
            ["sh", "-c", '{ { "$@"; echo $? >&3; } | true; } 3>&2', "sh", *PAWL, *words],
            cwd=pawl.workspace,
            capture_output=True,
            check=False,
        )
        code, *rest = left.stderr.decode().splitlines()
        assert (rest, code in ("0", "141")) == ([], True), left.stderr


def test_a_command_whose_reader_leaves_is_stopped_and_its_changes_are_kept(pawl: Pawl):
    script = "echo x > x; echo first; while echo more; do :; done"
    with pawl.started("run", "--apply", "--", "sh", "-c", script, until="first") as process:
        process.stdout.close()
        err = process.stderr.read()
        assert process.wait(PATIENCE) == 141
    assert b"not promoted, kept as entry 1" in err


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_trouble(pawl: Pawl, closed: str):
    for words in ("run --apply -- touch x", "--help"):
        done = subprocess.run(
            ["sh", "-c", f'"$@" {words} {closed}', "sh", *PAWL], cwd=pawl.workspace, capture_output=True, check=False
        )
        assert (done.returncode, b"Traceback" in done.stderr) == (0, False), (words, done)


def test_a_full_disk_under_the_output_is_said(pawl: Pawl):
    for words in ("history", "--help"):
        done = subprocess.run(
            ["sh", "-c", f'"$@" {words} > /dev/full', "sh", *PAWL],
            cwd=pawl.workspace,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr.count("\n"), "No space left" in done.stderr) == (1, 1, True), done


LOADING = """
import dataclasses, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
plain, made = dataclasses.Field.__set_name__, sys.argv[1]
def set_name(field, owner, name):
    if owner.__name__ == made:
        os.kill(os.getpid(), signal.SIGINT)
    return plain(field, owner, name)
dataclasses.Field.__set_name__ = set_name
from pawl.__main__ import main
sys.argv[:] = ["pawl", "run", "--", "true"]
sys.exit(main())
"""


@pytest.mark.parametrize("made", ["Config", "Execution"])
def test_130_when_it_is_stopped_while_it_loads_itself(pawl: Pawl, made: str):
    """Python before 3.12 makes another error of what is raised while a class is made."""
    words = [sys.executable, "-P", "-c", LOADING, made]
    done = subprocess.run(words, cwd=pawl.workspace, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (130, ""), done
    assert done.stderr.startswith("pawl: interrupted\n")


TELLING = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Stopping:
    def find_spec(self, name, path=None, target=None):
        if name == "pawl.ui.cli.mistakes":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Stopping())
from pawl.__main__ import main
sys.argv[:] = ["pawl", "run", "--", "true"]
sys.exit(main())
"""


def test_130_when_it_is_stopped_while_it_looks_what_is_wrong(
    pawl: Pawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "config.toml").write_text(f"[trust]\nfolders = ['{pawl.workspace}']\n")
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    (pawl.workspace / ".pawl").mkdir()
    (pawl.workspace / ".pawl/settings.toml").write_text("a = [")
    words = [sys.executable, "-P", "-c", TELLING]
    done = subprocess.run(words, cwd=pawl.workspace, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (130, ""), done
    assert done.stderr.endswith("pawl: interrupted\n      nothing was left half done\n")
