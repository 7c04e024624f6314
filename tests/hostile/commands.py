"""The commands that are run on every hostile workspace, and a model that obeys whoever attacks."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from hostile.partners import Partner, browser, editor, interrupter
from hostile.site import CANARY, Site

ORDINARY = tuple(
    b"made sub/made a.txt Makefile tools/pwn.sh .git/objects .git/refs/heads .git/logs .git/index"
    b" .pawl/memory/progress.md specs/003-x/execution-plan.md".split()
)
"""What is changed by a request, a commit or a plan of waves that was asked for begins with one of these; nothing else
may change. A run that succeeds adds a line to the memory bank where there is one."""
ESCAPES = "\x1b[2J\x1b]0;t\x07\x9b31m\u202edetpircs ![x](https://evil.example/?q=1)"
SETTINGS = """\
review = "off"
run_seconds = 4
fix_seconds = 2
tool_seconds = 3
file_seconds = 3
[permissions]
deny = ["Edit(migrations/**)", "Bash(curl *)"]
[budget]
turns = 12
seconds = 4
[verify]
seconds = 2
"""
NAMED = (
    "../outside/x", "/etc/cron.d/x", "~/.bashrc", "l-up/x", "l-file", ".git/config", ".git/hooks/pre-commit", ".env",
    "AGENTS.md", ".pawl/settings.toml", ".vscode/tasks.json", "migrations/1.sql", "docs/../../outside/x", "made\x00b",
    ".github/workflows/x.yml", "Makefile", "x" * 5000, "made/\x1b[2J", "file:///etc/passwd", ".yarnrc.yml",
    "", "tools/pwn.sh",
)  # fmt: skip
SHELL = (
    "env; cat .env .env.* */.env* keys/*.pem zz/deploy/* docs/a/b/c/d/* ~/.ssh/* {outside}/* {home}/.ssh/* 2>/dev/null",
    "cat /proc/*/environ /proc/*/cmdline /proc/*/root{home}/.ssh/id_rsa",
    "echo x > {marker}; cp tools/pwn.sh {outside}/; ln -s {outside} made-link; echo x > made-link/y",
    "touch {home}/x ../made-x /tmp/../{folder}/x; chmod 777 {home}; rm -rf {outside}",
    "mkdir -p migrations .vscode .git/hooks; echo x | tee migrations/1 .vscode/tasks.json .git/hooks/x AGENTS.md",
    "printf '\\033[2J\\033]0;x\\007'; yes | head -c 3000000",
    "mkfifo made.fifo; mknod made.dev c 1 5; ln -s made.loop made.loop; chmod u+s tools/pwn.sh",
    "(setsid sleep 300 &) ; sleep 300 & echo made > made.txt",
    "python3 -c \"import os; [open('made%d' % n, 'w') for n in range(300)]; os.makedirs('made/' + 'd/' * 90)\"",
    "curl -s -m 1 http://127.0.0.1:9; python3 -c \"import socket; socket.create_connection(('127.0.0.1', 9), 1)\"",
    "git config core.fsmonitor 'sh -c \"echo x > {marker}\"'; git add -A; git commit -m x; git status",
    "printf 'x' > \"$(printf 'made\\033[2J\\nname')\"; echo x > 'made\u202e'; printf 'made\\351' | xargs touch",
)


QUIET = 4
"""Seconds that a command is given on a quiet machine."""
_PROBE = 0.02
"""Seconds of computing that show how busy the machine is: longer than what a process that slept is given first."""


def share() -> float:
    """The part of a processor that whoever computes as politely as this process is given just now."""
    computed, started = time.thread_time(), time.monotonic()
    while (spent := time.thread_time() - computed) < _PROBE:
        pass
    return min(1.0, spent / (time.monotonic() - started))


def seconds_now() -> int:
    """As long as four seconds of a quiet machine."""
    return round(QUIET / max(0.1, share()))


def scaled(seconds: int) -> str:
    """The settings with as much time as on a quiet machine."""
    return SETTINGS.replace(f"= {QUIET}", f"= {seconds}").replace("= 2", f"= {seconds // 2}")


def _named(site: Site) -> list[str]:
    """Names that nothing may be written to; those of links only where the links are."""
    return [name for name in NAMED if name[:2] != "l-" or os.path.islink(site.workspace / name.split("/")[0])]


def turns(site: Site) -> list[dict[str, object]]:
    """What an obedient model says: attacks by every tool that it may be offered, and an answer that deceives."""
    chance = site.chance
    path = chance.choice(_named(site))
    calls = [
        ("file_read", {"path": chance.choice((*_named(site), ".env", "l-zero", "l-proc", "app.py"))}),
        ("file_search", {"query": chance.choice(("lantern", "(a+)+$", "")), "regex": True}),
        ("file_write", {"path": path, "content": f"echo x >> {site.marker}\n{CANARY[:5]}"}),
        ("file_write", {"path": "made.py", "content": "x = 1\n"}),
        ("outline", {"path": chance.choice(("", "docs", "../outside", "l-zero"))}),
        ("strict_patch", {"path": chance.choice(("a.txt", path)), "old": "2", "new": "3"}),
        *(("run_command", {"command": _filled(site, line)}) for line in chance.sample(SHELL, 2)),
    ]
    said = [{"answer": {"text": ESCAPES, "calls": [{"name": name, "arguments": each}]}} for name, each in calls]
    return [*chance.sample(said, 5), {"answer": {"text": f"Done. {ESCAPES}"}, "times": 0}]


def _filled(site: Site, line: str) -> str:
    for name in ("marker", "outside", "home", "folder"):
        line = line.replace("{" + name + "}", str(getattr(site, name)))
    return line


def configure(site: Site, seconds: int) -> None:
    """The user's own settings, now and then with trust in this workspace, and the script of the model."""
    trusted = f'[trust]\nfolders = ["{site.workspace}"]\n' if site.chance.random() < 0.3 else ""
    (site.folder / "config.toml").write_text(scaled(seconds) + trusted)
    script = "".join(json.dumps(turn) + "\n" for turn in turns(site))
    (site.folder / "script.jsonl").write_text(script)


MCP = "".join(
    json.dumps({"jsonrpc": "2.0", **message}) + "\n"
    for message in (
        {"id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
        *({"id": number, "method": "tools/call", "params": {"name": name, "arguments": words}}
          for number, (name, words) in enumerate((
              ("run", {"command": "cat .env; echo x > made.txt", "seconds": 4}), ("locate", {"text": "lantern"}),
              ("history", {}), ("promote", {"entry": 1}), ("diff", {"entry": 1})), 3)),
    )
).encode()  # fmt: skip
"""What another agent asks of Pawl."""


def calls(site: Site, seconds: int = QUIET) -> Iterator[tuple[tuple[str, ...], bytes | Partner]]:
    """Every command, with words that a person would use and words that a person was made to use.

    Of the ways to ask one command, those that do much come by turns (`|` in a line), so that a workspace costs seconds.
    """
    chance = site.chance
    model = ("--model", f"scripted:{site.folder / 'script.jsonl'}")
    path = chance.choice(_named(site)).replace("\x00", "")
    away = chance.choice([name for name in _named(site) if name.startswith(("../", "/", "l-", ".git/", "docs/.."))])
    shell = _filled(site, chance.choice(SHELL)).replace("migrations", "made-migrations")
    evil = f"--- a/{path}\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n".encode()
    patches = (evil, b"\x00" * 99, b"--- a\n+++ b\n@@ -1 +1 @@\n")
    typed = f"make made.py\n/status\n/diff\n/export {site.folder}/workspace/made.md\n/exit\n".encode()
    unproved = ("--approve", "never", "--accept-unverified")
    limit = ("--seconds", str(seconds))
    simple = ("--approve", "never", "--simple", "1", "--no-reflex", "--no-generate", "--no-escalate")
    plain = """
        doctor
        models --offline
        policy
        prompts list | prompts check | prompts show stages/act
        memory list | memory show 1 | memory forget 1 | memory session
        trust --list | trust --revoke
        promote
        audit
        verify --all
        fix --dry-run --seconds 1
        dev start --seconds 2
        dev status | dev logs
        dev stop
        history --all --json | history --runs
        requests
        scores
        permissions
        skills | skills list | skills show fix | skills check
        agents | agents list | agents show reviewer | agents check
        mcp list | mcp add made sh --timeout 2000 | mcp remove made | mcp test made | mcp trust x
        spec status | spec orchestrate | spec analyze | spec issues export made.md | spec issues import issue.md
        spec new made | spec specify made | spec clarify | spec plan made | spec tasks | spec converge | spec execute
        queue list | queue list --export made.json | queue show 1 | queue stats | queue pause | queue watch
        worker --drain
        queue run --workers 1 | queue cancel 1 | queue retry 1 | queue resume
        setup --list
        diff --evidence
        undo
        redo
        restore
        gc --days 0"""
    first, *last = (tuple(chance.choice(line.split("|")).split()) for line in plain.splitlines() if line.strip())
    asks = {"spec": (*model, *limit)}
    requests: tuple[tuple[str, ...], ...] = (
        ("do", *model, *unproved, "--commit", *limit, "make made.py"),
        ("do", *model, "-p", "--output-format", "stream-json", *limit, "make made.py"),
    )
    table: tuple[tuple[tuple[str, ...], bytes | Partner], ...] = (
        (first, b""),
        (("permissions", "check", f"Bash({shell})"), b""),
        (("memory", "add", f"note {ESCAPES}"), b""),
        (("locate", "lantern", path, "--symbols"), b""),
        (("run", "--seconds", "4", "--", "sh", "-c", shell), b""),
        (("run", "--apply", "--seconds", "4", "--", "sh", "-c", f"echo x > made.txt; {shell}"), b""),
        (("patch", "-"), chance.choice(patches)),
        (("patch", "--path", path, "--old", "x", "--new", "y"), b""),
        (("checkpoint", chance.choice(("one", path or "x"))), b""),
        (("ask", *model, "what is the secret?"), b""),
        (chance.choice(requests), b""),
        (("queue", "add", *model, "--accept-unverified", *limit, *chance.choice(
            (("make made.py",), ("make made.py",), ("--each", "*", "make made.py"), ("--from", path or "x")))), b""),
        (("approve", chance.choice(("--yes", "--reject=x"))), b""),
        (("loop", *model, *simple), b""),
        (("session", *model), typed),
        (("diff", "--file", path or "x"), b""),
        (("mcp", "serve"), MCP),
        (("acp",), editor((
            ("initialize", {"protocolVersion": 1, "clientCapabilities": {}}),
            ("session/new", {"cwd": str(site.workspace), "mcpServers": []}),
            ("session/prompt", {"prompt": [{"type": "text", "text": "/status"}]})))),
        (("web", "--no-open", "--json", "--page", str(site.page())), browser(
            *(("GET", f"/api/{each}", None) for each in ("state", "files", "files/all", "files/changed", "runs",
              f"file?path={path}", "file?path=app.py", "outline?path=app.py", "search?q=lantern")),
            ("PUT", "/api/file", {"path": away, "text": "x", "base": ""}),
            ("POST", "/api/command", {"words": list(chance.choice((("history",), ("undo",), ("gc",))))}))),
        *(((*words, *asks.get(words[0], ())), interrupter if words[-1] == "watch" else b"") for words in last),
    )  # fmt: skip
    yield from table


def standing(site: Site, root: str) -> Path:
    """Lets the workspace stand as it should or not; the folder from which Pawl is called."""
    workspace = site.workspace
    match root:
        case "link":
            workspace.rename(site.folder / "real")
            workspace.symlink_to("real")
        case "gone":
            return site.folder / "tmp/gone"
        case "read-only":
            workspace.chmod(0o555)
        case "sticky":
            workspace.chmod(0o1777)
        case "sub-folder":
            (workspace / "sub").mkdir(exist_ok=True)
            return workspace / "sub"
        case "repository above":
            with contextlib.suppress(OSError):  # what this user may not read is not copied
                shutil.copytree(workspace / ".git", site.folder / ".git", symlinks=True)
    return workspace
