"""The values of a user's secret variables are found nowhere after a day's work, however a model echoes them."""

from __future__ import annotations

import base64
import json
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from ui.cli.console import Pawl
from ui.cli.projects import Project
from ui.cli.test_cli_do import FILES, RIGHT

pytestmark = [pytest.mark.spec("B13"), pytest.mark.attack("A25")]

VALUES = {
    "GITHUB_TOKEN": "velvet otter by the 42nd harbour",
    "SHOP_PASSWORD": "Tr1cky",
    "DEPLOY_KEY": "-----BEGIN THING-----\nMIIabcdefgh0123456789ABCD\nzyxwvu9876543210ZYXWVUTS\n-----END THING-----",
    "vault_secret": "kä/ş+word&more=1",
    "CI_JWT": "lantern oak 7 crossing",
    "GH_PAT": "crimson-Badger-31",
    "DB_PASS": "Mellow29Heron",
}
IN_ADDRESSES = {
    "DATABASE_URL": "Brisk-77-Lynx",
    "MIRROR": "tall%20Fox%2F9x",
    "QUEUES": "Quiet@Moth5",
}
ADDRESSES = {
    "DATABASE_URL": "postgres://kim:Brisk-77-Lynx@db.example.org:5432/shop",
    "MIRROR": "https://kim:tall%20Fox%2F9x@mirror.example.org/",
    "QUEUES": "amqp://kim:Quiet@Moth5@queue.example.org/,amqp://127.0.0.1/",
}
IN_USERS_FILE = {"MAILER_SECRET": "seventeen-Quiet-Geese"}
IN_TRUSTED_FILE = {"PAYMENT_API_KEY": "umbrella#88#marble"}
EVERY = {**VALUES, **IN_ADDRESSES, **IN_USERS_FILE, **IN_TRUSTED_FILE}


def forms(value: str) -> Iterator[bytes]:
    """The value as it may be kept, to be looked for."""
    data = value.encode()
    yield data
    yield json.dumps(value)[1:-1].encode()
    yield json.dumps(value, ensure_ascii=False)[1:-1].encode()
    yield data.hex().encode()
    yield quote(value, safe="").encode()
    if len(data) > 12:
        yield base64.b64encode(data)[:-4]
    for line in value.splitlines() if "\n" in value else ():
        if not line.startswith("-----"):
            yield line.encode()


ECHO = (
    "; ".join((*EVERY.values(), *(quote(one, safe="") for one in EVERY.values())))
    + " "
    + " ".join(base64.b64encode(one.encode()).decode() + " " + one.encode().hex() for one in EVERY.values())
)


def leaks(data: bytes) -> list[str]:
    return [f"{name}: {form!r}" for name, value in EVERY.items() for form in forms(value) if form in data]


def turns(*calls: dict[str, object]) -> str:
    """A model that says and thinks all values with every call, and in its last answer."""
    said = [{"answer": {"text": ECHO, "thoughts": [{"text": ECHO}], "calls": [one]}} for one in calls]
    return "".join(
        json.dumps(turn) + "\n" for turn in (*said, {"answer": {"text": f"# done, app.py:1\n\n`{ECHO}`\n"}, "times": 0})
    )


CALLS = (
    {"name": "file_read", "arguments": {"path": ECHO[:300]}},
    {"name": "file_search", "arguments": {"query": ECHO}},
    {"name": "run_command", "arguments": {"argv": ["echo", ECHO]}},
    {"name": ECHO[:60], "arguments": {ECHO: ECHO}},
    {"name": "strict_patch", "arguments": {"path": "app.py", "old": "+ 2", "new": "+ 1"}},
)


@pytest.fixture
def shop(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pawl:
    """A project of a user who has secrets in the environment, in their own `.env` and in that of a trusted folder."""
    for name, value in {**VALUES, **ADDRESSES}.items():
        monkeypatch.setenv(name, value)
    settings = tmp_path / "settings"
    settings.mkdir()
    (settings / "config.toml").write_text('memory_bank = "on"\n')
    (settings / ".env").write_text("".join(f"{name}='{value}'\n" for name, value in IN_USERS_FILE.items()))
    monkeypatch.setenv("PAWL_CONFIG", str(settings / "config.toml"))
    pawl = project(FILES)
    subprocess.run(["git", "init", "-q"], cwd=pawl.workspace, check=True)
    (pawl.workspace / ".gitignore").write_text(".env\n")
    (pawl.workspace / ".env").write_text("".join(f"{name}='{value}'\n" for name, value in IN_TRUSTED_FILE.items()))
    assert pawl("trust").code == 0
    return pawl


@pytest.mark.whole
def test_after_everything_was_done_with_them_they_stand_nowhere(
    shop: Pawl, tmp_path: Path, state_directory: Path, monkeypatch: pytest.MonkeyPatch
):
    script = tmp_path / "outside" / "model.jsonl"
    script.parent.mkdir()
    model = ("--model", f"scripted:{script}")
    said: dict[str, bytes] = {}

    def used(*words: str, stdin: bytes = b"") -> None:
        done = shop.raw(*words, stdin=stdin)
        assert b"Traceback" not in done.stderr, done.stderr
        said[" ".join(words)[:40]] = done.stdout + done.stderr

    script.write_text(turns(*CALLS[:3]))
    used("ask", "what", "does", "after", "do?", "--thoughts", "--record", str(tmp_path / "said.jsonl"), *model)
    used("ask", "--json", "what", "is", "app.py?", "--no-cache", *model)
    script.write_text(turns(*CALLS))
    used("do", f"fix the bug in after (use {VALUES['GITHUB_TOKEN']})", "--approve", "never", "--thoughts", *model)
    assert (shop.workspace / "app.py").read_text() == RIGHT, said
    used("undo")
    script.write_text(turns(*CALLS))
    used("-p", "fix the bug in after", "--output-format", "stream-json", "--approve", "never", *model)
    used("undo")
    script.write_text(turns(*CALLS))
    used("loop", "--no-reflex", "--simple", "mend", ECHO[:200], "after", *model)
    script.write_text(turns(*CALLS[:2]))
    line = " ".join(ECHO.split("\n"))
    used(*model, stdin=f"explain app.py {line}\n/export {tmp_path / 'page.md'}\n/memory add {line}\n".encode())
    assert (tmp_path / "page.md").exists(), said
    bulk = [
        words
        for name, value in EVERY.items()
        for words in (
            ["memory", "add", f"{name} goes {value}"],
            ["checkpoint", f"at-{quote(value, safe='')[:30]}"],
            ["restore", value],
            ["locate", value],
        )
    ]
    script_words = ["run", "--apply", "--", "sh", "-c", f": {shlex.quote(ECHO)}\ntouch made"]
    bulk += [script_words, ["memory", "list"], ["history", "--all"], ["history", "--json"], ["audit"]]
    for words, one in zip(bulk, shop.many(bulk), strict=True):
        said[" ".join(words)] = (one.out + one.err).encode()
    found = {name: leaks(text) for name, text in said.items()}
    for path in (
        *state_directory.rglob("*"),
        *shop.workspace.rglob("*"),
        tmp_path / "said.jsonl",
        tmp_path / "page.md",
    ):
        if path.is_file() and path.name != ".env":
            found[str(path)] = leaks(path.read_bytes())
        found[f"name of {path}"] = leaks(bytes(path))
    assert {name: several for name, several in found.items() if several} == {}


@pytest.mark.whole
def test_a_change_that_would_hold_one_is_asked_about_even_where_nothing_is(shop: Pawl, tmp_path: Path):
    write = {"name": "file_write", "arguments": {"path": "conf.py", "content": f"X = {VALUES['GITHUB_TOKEN']!r}\n"}}
    (tmp_path / "model.jsonl").write_text(turns(*CALLS[4:], write))
    said = shop("do", "fix the bug in after", "--approve", "never", "--model", f"scripted:{tmp_path / 'model.jsonl'}")
    assert said.code == 4, said
    assert "'conf.py' would hold the value of one of your variables that is a secret" in said.out
    assert not (shop.workspace / "conf.py").exists()
