"""Short stories of what was once possible, of steps that chance would not put together."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import select
import shlex
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path

import environment
from hostile import commands
from hostile.case import PATH, Case
from hostile.defects import Stories
from hostile.ingredients import CLASSES, CONFIGURATION
from hostile.site import CANARY, KEY, shared_folder

import pawl.agent

ALONE = (
    "clean", "process", "promisor", "external protocol", "worktree", "bare flag", "broken", "endless", "continued",
    "include outside", "bare", "objects",
)  # fmt: skip
"""What does not go together with other configurations."""
MIDDLE = "touch evil-middle"


def use(name: str, **arguments: object) -> Mapping[str, object]:
    """A turn in which the model calls one tool."""
    return {"answer": {"text": "", "calls": [{"name": name, "arguments": arguments}]}}


def do(case: Case, *turns: Mapping[str, object], words: tuple[str, ...] = ()):
    model = case.says(*turns)
    unproved = ("--approve", "never", "--accept-unverified")
    return case.call("do", "--model", model, *unproved, *words, "change made.txt")


def begin(case: Case, extra: str = "") -> None:
    commands.configure(case.site, case.seconds)
    (case.site.folder / "config.toml").write_text(commands.scaled(case.seconds) + extra)


def _hooks(line: str) -> str:
    return f"[[hooks.Stop]]\nhooks = [{{ command = '{line}' }}]\n"


def committed(*names: str):
    def story(case: Case) -> None:
        for name in names:
            CLASSES["git"][name](case.site)
        begin(case)
        do(case, use("run_command", command="echo 3 > a.txt; echo 1 > made.txt"), words=("--commit",))
        case.call("locate", "where is b written?")

    return story


def rewritten_hook(case: Case) -> None:
    """Trust in `make lint` is no trust in what an agent makes of the Makefile."""
    case.site.write(".pawl/settings.toml", _hooks("make lint"))
    case.site.write("Makefile", "lint:\n\ttrue\n")
    case.site.write("other", f"lint:\n\techo make >> {case.site.marker}\n")
    begin(case)
    case.call("trust", stdin=b"y\n")
    do(case, use("run_command", command="cp other Makefile"))
    do(case, use("file_write", path="made.txt", content="2\n"))


def linked_settings(case: Case) -> None:
    """`.pawl` is a link to a folder that an agent may write: trust in it is trust in nothing."""
    act = Path(pawl.agent.__file__).with_name("prompts") / "stages/act.md"
    case.site.write("cfg/prompts/stages/act.md", act.read_text())
    case.site.write("other", f"{act.read_text()}\nINJECTED\n")
    case.site.link(".pawl", "cfg")
    case.expects("cfg/")
    begin(case)
    case.call("trust", stdin=b"y\n")
    case.call("run", "--apply", "--allow-protected", "--", "cp", "other", "cfg/prompts/stages/act.md")
    do(case, use("file_write", path="made.txt", content="2\n"))
    if "INJECTED" in case.sent:
        case.note(["do"], "what an agent wrote is trusted through a link")


def secrets_in_number(case: Case) -> None:
    for number in range(230):
        case.site.write(f"keys/{number}.pem", "no\n")
    for name in (".env", "zz/.env", "zz/last.pem", "a/b/c/d/e/f/g/h/i/j/k/l/m/n/.env"):
        case.site.write(name, f"note={CANARY}\n")
    begin(case)
    case.call("run", "--", "sh", "-c", "find . -name '*.env' -o -name '*.pem' | xargs cat")
    do(case, use("run_command", command="cat zz/.env zz/last.pem"))


def secrets_planted(case: Case) -> None:
    """A command that makes files named like secrets uses nothing up."""
    case.site.write("zz/.env", f"note={CANARY}\n")
    begin(case)
    case.site.write("plant.py", "for n in range(230): open(f'made{n}.pem', 'w')\n")
    do(case, use("run_command", command="python3 plant.py"), use("run_command", command="cat zz/.env"))


def secrets_by_other_names(case: Case) -> None:
    """A second name of a secret file, and the file that a link with the name of a secret leads to."""
    case.site.write(".env", f"note={CANARY}\n")
    os.link(case.site.workspace / ".env", case.site.workspace / "notes.txt")
    case.site.write("config/real.txt", CANARY)
    case.site.link("config/key.pem", "real.txt")
    begin(case)
    for path in ("notes.txt", "config/real.txt"):
        case.call("run", "--", "cat", path)


def token_value(case: Case) -> None:
    """The value of a variable named like a key is neither kept nor sent, wherever it stands."""
    case.site.write("notes.txt", f"the word is {KEY}\n")
    begin(case)
    case.call("memory", "add", f"the word is {KEY}")
    do(case, use("file_read", path="notes.txt"), use("run_command", command="cat notes.txt"))
    for words in (("memory", "list"), ("history", "--all", "--json")):
        case.call(*words)


def own_hook(case: Case) -> None:
    """A hook on this machine is no program that stands in the workspace."""
    program = case.site.workspace / "tools/pwn.sh"
    begin(case, f"[[hooks.Stop]]\nhooks = [{{ command = '{program}', host = true }}]\n")
    do(case, use("file_write", path="made.txt", content="2\n"))


def workspace_gh(case: Case) -> None:
    """A program of the workspace is none of the machine, though the user's PATH leads to it."""
    case.site.write("tools/gh", f"#!/bin/sh\n{case.site.program('gh')}\n", 0o755)
    case.site.write("specs/001-x/tasks.md", "# Tasks\n\n- [ ] T001 Write a.txt\n")
    case.site.write("specs/001-x/spec.md", "# x\n")
    config = (case.site.workspace / ".git/config").read_text()
    case.site.write(".git/config", f'{config}[remote "origin"]\n\turl = https://github.com/kim/x.git\n')
    case.extra["PATH"] = f"{case.site.workspace}/tools:tools:.:/usr/bin:/bin"
    begin(case)
    for what in ("export", "import"):
        case.call("spec", "issues", what, "--github")


def shadowing_modules(case: Case) -> None:
    """Interpreters that Pawl starts find no module in the folder that it is called in."""
    for name in ("pawl.py", "json.py", "sitecustomize.py", "usercustomize.py", "argparse.py"):
        case.site.write(name, f"import os\nos.system({case.site.program(name)!r} + ' </dev/null')\n")
    begin(case)
    case.call("mcp", "serve", stdin=commands.MCP)
    case.call("queue", "add", "--model", case.says(), "make made.txt")
    case.call("queue", "run", "--workers", "2")
    case.call("run", "--", "true")


def special_bits(case: Case) -> None:
    begin(case)
    line = "mkdir made-d made-t; echo x > made-f; chmod 2775 made-d; chmod 1777 made-t; chmod 4755 made-f"
    case.call("run", "--apply", "--", "sh", "-c", line)
    for path in case.site.workspace.glob("made-*"):
        if path.stat().st_mode & 0o7000:
            case.note(["run --apply"], f"{path.name} has the mode {path.stat().st_mode:o}")


def made_repository(case: Case) -> None:
    """A folder that git would take for a repository, with a configuration that runs something."""
    begin(case)
    config = f"[core]\n\tfsmonitor = sh -c 'echo x >> {case.site.marker}'\n"
    line = "mkdir -p made/objects made/refs; echo x | tee made/objects/x made/refs/x; echo 'ref: x' > made/HEAD; "
    case.call("run", "--apply", "--", "sh", "-c", f"{line} printf %s {shlex.quote(config)} > made/config")
    if (case.site.workspace / "made/config").exists():
        case.note(["run --apply"], "the configuration of a repository is promoted")


def edited_module(case: Case) -> None:
    """A verdict does not outlive an edit of what is installed, though size and time stay as they were."""
    inner = "node_modules/dep/inner.js"
    case.site.write(".gitignore", "node_modules\n")
    case.site.write(inner, "module.exports = 1;\n")
    code = "require('node:test')('it', () => { if (require('./node_modules/dep/inner.js') !== 1) throw 1; });\n"
    case.site.write("it.test.js", code)
    begin(case)
    case.call("verify", "--all", "--json")
    before = os.stat(case.site.workspace / inner)
    with open(case.site.workspace / inner, "r+") as file:
        file.write("module.exports = 2;\n")
    os.utime(case.site.workspace / inner, ns=(before.st_atime_ns, before.st_mtime_ns))
    said = case.call("verify", "--all", "--json")
    for step in json.loads(said.out or "{}").get("steps", []):
        if step["step"] == "tests" and (step["cached"] or step["standing"] == "pass"):
            case.note(["verify"], "the verdict from before is told again")


def installed_elsewhere(case: Case) -> None:
    """What a script installed in one workspace is none of another one with the same manifest and lock."""
    uses = {"name": "shop", "version": "1.0.0", "dependencies": {"greet": "file:greet"}}
    places = {"": uses, "greet": {"version": "1.0.0"}, "node_modules/greet": {"resolved": "greet", "link": True}}
    lock = {"name": "shop", "version": "1.0.0", "lockfileVersion": 3, "packages": places}
    case.site.write("package.json", json.dumps({**uses, "scripts": {"postinstall": "node make.js"}}))
    case.site.write("package-lock.json", json.dumps(lock))
    case.site.write("greet/package.json", json.dumps({"name": "greet", "version": "1.0.0"}))
    case.site.write("it.test.js", "require('node:test')('it', () => { if (require('made') !== 1) throw 1; });\n")
    other = case.site.folder / "other"
    shutil.copytree(case.site.workspace, other)
    making = "fs.mkdirSync('node_modules/made', {recursive: true}); fs.writeFileSync('node_modules/made/index.js'"
    case.site.write("make.js", f"const fs = require('fs'); {making}, 'module.exports = 1');\n")
    begin(case)
    settings = case.site.folder / "config.toml"
    settings.write_text(settings.read_text() + "install = true\n")
    case.call("verify", "--all", "--json")
    settings.write_text(settings.read_text().replace("install = true\n", ""))
    case.cwd = other
    said = case.call("verify", "--all", "--json")
    if any(step["step"] == "tests" and step["standing"] == "pass" for step in json.loads(said.out or "{}")["steps"]):
        case.note(["verify"], "what another workspace's script installed is used")


def denied_path(case: Case) -> None:
    case.site.write("write.py", "open('migrations/1.sql', 'w').write('x')\n")
    case.site.write("migrations/0.sql", "x\n")
    begin(case)
    do(case, use("run_command", command="python3 write.py"))


def two_links(case: Case) -> None:
    """`made-y -> made-x/../out` leads nowhere until `made-x -> .` makes it lead out."""
    begin(case)
    for line in ("mkdir made-x; ln -s made-x/../outside made-y", "rm -r made-x; ln -s . made-x"):
        case.call("run", "--apply", "--", "sh", "-c", line)
    for line in ("ln -s made-a/../outside made-b", "ln -s . made-a"):
        case.call("run", "--apply", "--", "sh", "-c", line)
    for path in Path(case.site.workspace).glob("made-*"):
        if os.path.realpath(path).startswith(str(case.site.outside)):
            case.note(["two promotions"], f"{path.name!r} leads to {os.path.realpath(path)!r}")


def planted_staging(case: Case) -> None:
    """Names in which promotion makes its files are there already, as links that lead out."""
    begin(case)
    case.call("run", "--apply", "--", "sh", "-c", "echo 1 > made.txt")
    for folder in (case.site.folder / "state", case.site.folder / "state/locks"):
        key = hashlib.sha256(os.fsencode(folder)).hexdigest()[:8]
        for number in range(8):
            case.site.link(f".pawl-tmp-{key}-{number}", str(case.site.outside))
    said = case.call("run", "--apply", "--", "sh", "-c", "echo 2 > made.txt; mkdir made; echo 3 > made/a")
    if said.code or (case.site.workspace / "made.txt").read_text() != "2\n":
        case.note(["run --apply"], f"a planted name stops promotion: {said.err[-200:]}")


def hidden_middle(case: Case) -> None:
    """What is asked about is shown whole or counted, however much is put around it."""
    begin(case)
    asks = commands.scaled(case.seconds).replace("deny = [", 'ask = ["Bash(echo *)"]\ndeny = [', 1)
    (case.site.folder / "config.toml").write_text(asks)
    for filler in ("\n" * 400, " " * 6000, "\t" * 6000, "\r" * 500, "\u200b" * 5000, "\u2028" * 500, "#\n" * 500):
        line = f"echo x > {case.site.outside}/y{filler}\n{MIDDLE}; true {filler} # harmless"
        said = do(case, use("run_command", command=line), words=("--approve", "each"))
        shown = said.out.splitlines()
        if said.code != 4 or not any(MIDDLE in line[:300] for line in shown[:60]) or len(shown) > 200:
            case.note(["do"], "the middle of the command that is asked about is far away")
        case.call("approve", "--reject", "no")


def odd_files(case: Case) -> None:
    """What never ends and what never begins, where Pawl and checkers read."""
    zero = ("docs/.gitignore", "AGENTS.md", "made.py", ".pawl/settings.toml")
    fifo = (".gitignore", "package.json", ".env")
    for path, kind in (*((each, "/dev/zero") for each in zero), *((each, "fifo") for each in fifo)):
        case.site.special(path, kind)
    case.site.special(".pawl/hooks.json", "/proc/kmsg")
    begin(case)
    for line in ("verify", "permissions", "locate zero", "trust", "fix --dry-run", "run -- true"):
        case.call(*line.split())


def endless_settings(case: Case) -> None:
    """What a trusted workspace says of keys, and what its environment says of itself, never begins."""
    case.site.special(".env", "fifo")
    case.site.special(".venv/pyvenv.cfg", "fifo")
    case.extra["VIRTUAL_ENV"] = str(case.site.workspace / ".venv")
    begin(case, f'[trust]\nfolders = ["{case.site.workspace}"]\n')
    case.call("run", "--", "true")


def chained_links(case: Case) -> None:
    """Links to links, more than anything follows."""
    CLASSES["sizes"]["chain"](case.site)
    begin(case)
    for line in ("run -- true", "locate zero", "patch --path chain/0/x --old x --new y", "verify", "fix --dry-run"):
        case.call(*line.split())
    do(case, use("file_read", path="chain/0"), use("file_write", path="made.txt", content="2\n"))


def long_lines(case: Case) -> None:
    """Rows of one sign, at which a careless pattern begins again and again."""
    case.site.write("specs/001-x/spec.md", "# x" + "\n" * 300_000)
    case.site.write("specs/001-x/tasks.md", f"# Tasks\n## A{' ' * 300_000}x\n- [ ] T001 x in a.txt\n")
    begin(case)
    case.call("spec", "status")


def netlink(case: Case) -> None:
    begin(case)
    code = (
        "import socket\nfor n in range(1, 23):\n for kind in (2, 3):\n"
        "  try: socket.socket(16, kind, n); print('opened', n)\n"
        "  except OSError: pass\n"
    )
    said = case.call("run", "--", "python3", "-c", code)
    if "opened" in said.out:
        case.note(["run"], f"netlink beyond routing: {said.out.split()}")


def dev_server(case: Case) -> None:
    """A server that binds every address is reached through one forwarded port, and reaches nothing by itself."""
    site, names = case.site, case.ears.names
    site.write("serve.py", (
        "import http.server, socket, sys\n"
        f"for to in (('127.0.0.1', {names['tcp']}),):\n try: socket.create_connection(to, 1)\n except OSError: pass\n"
        f"s = socket.socket(socket.AF_UNIX)\ntry: s.connect('\\0{names['ears']}')\nexcept OSError: pass\n"
        "print('Serving on ' + sys.argv[1], flush=True)\n"
        "http.server.test(http.server.SimpleHTTPRequestHandler, port=int(sys.argv[1]), bind='0.0.0.0')\n"
    ))  # fmt: skip
    server = {"name": "own", "when": {"files": ["serve.py"]}, "words": ["python3", "serve.py", "{port}"], "port": 8123}
    lines = [f"{key} = {json.dumps(value)}" for key, value in server.items() if key != "when"]
    ready = "ready = ['Serving on (?P<port>\\d+)']"
    begin(case, "\n".join(["[[verify.dev_server]]", *lines, 'when = { files = ["serve.py"] }', ready, ""]))
    said = case.call("dev", "start", "--json", "--seconds", "8", keeps=True)
    port = json.loads(said.out or "{}").get("port", 0)
    if not port:
        case.note(["dev start"], f"did not start: {said.out[-300:]} {said.err[-300:]}")
    for _ in range(50):  # it says so before it listens
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            break
        select.select([], [], [], 0.05)
    for address in ("127.0.0.2", "127.8.8.8"):
        try:
            socket.create_connection((address, port), 1).close()
            case.note(["dev start"], f"reached at {address}:{port}")
        except OSError:
            pass
    case.call("dev", "stop")


@functools.cache
def _environment() -> Path:
    """An interpreter with pytest, made once for all stories."""
    return environment.make(shared_folder())


def shadowed_runner(case: Case) -> None:
    """A module of the workspace in the place of the runner decides nothing."""
    own = _environment()
    case.extra |= {"VIRTUAL_ENV": str(own), "PATH": f"{own}/bin:/usr/local/bin:/usr/bin:/bin"}
    case.site.write("made.py", "def f(n):\n    return n\n")
    case.site.write("pyproject.toml", '[tool.pytest.ini_options]\npythonpath = ["."]\n')
    case.site.write("test_made.py", "from made import f\n\n\ndef test_f():\n    assert f(1) == 2\n")
    begin(case)
    settings = commands.SETTINGS.replace("= 4", "= 60").replace("= 2", "= 30")  # a runner cut off would decide nothing
    (case.site.folder / "config.toml").write_text(settings + 'skip = ["types", "lint", "diagnostics"]\n')
    fake = (
        "import sys\nif 'pytest' in ' '.join(sys.argv):\n    print('1 passed in 0.01s')\n    sys.exit(0)\n"
        "def console_main(): sys.exit(0)\nmain = console_main\n"
    )
    for name in ("pytest.py", "pytest/__init__.py", "pluggy.py", "json.py"):
        case.expects(name.partition("/")[0])
        said = do(case, *(use("file_write", path=each, content=fake) for each in ("made.txt", name)))
        if not re.search(r"after +1 failed", said.out):
            case.note(["do"], f"with {name} the installed runner does not decide: {said.out[-300:]}")


def named_files(case: Case) -> None:
    """A file that the user names is a link to one of the user's own, and what is written is text of the workspace."""
    case.site.write("specs/001-x/tasks.md", f"# Tasks\n- [ ] T001 `{case.site.program('issue')}` in a.txt\n")
    case.site.link("made.md", str(case.site.home / ".bashrc"))
    begin(case)
    case.call("spec", "issues", "export", "made.md")


def links_on_the_path(case: Case) -> None:
    """A folder of the workspace stands first on the PATH, and a link in it leads to a folder of the user's."""
    case.site.link("bin/node", str(case.site.outside / "secret.txt"))
    case.extra["PATH"] = f"{case.site.workspace}/bin:{PATH}"
    begin(case)
    case.call("run", "--", "cat", str(case.site.outside / "secret.txt"))


STORIES: Stories = {
    "named files": named_files,
    "links on the PATH": links_on_the_path,
    **{f"commit with git {name}": committed(name) for name in ALONE},
    "commit with all else that git runs": committed(*(name for name in CONFIGURATION if name not in ALONE)),
    "rewritten hook": rewritten_hook,
    "linked settings": linked_settings,
    "gh of the workspace": workspace_gh,
    "modules that shadow Pawl": shadowing_modules,
    "secrets in number": secrets_in_number,
    "secrets planted": secrets_planted,
    "secrets by other names": secrets_by_other_names,
    "value of a token": token_value,
    "hook that an agent can write": own_hook,
    "special bits": special_bits,
    "repository in a folder": made_repository,
    "installed module edited": edited_module,
    "installed in another workspace": installed_elsewhere,
    "endless settings": endless_settings,
    "denied path": denied_path,
    "two links": two_links,
    "planted staging": planted_staging,
    "hidden middle": hidden_middle,
    "odd files": odd_files,
    "chained links": chained_links,
    "long lines": long_lines,
    "netlink": netlink,
    "dev server": dev_server,
    "shadowed runner": shadowed_runner,
}
