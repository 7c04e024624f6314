"""Runs hooks at the events of a run, and puts what they say together.

They run in the sandbox, on a bench, as commands do: an agent may have written what they start. Only a hook of the
user's own settings may ask for this machine. Those of a repository are run only where the user trusts it. A hook
tightens what the rules say; only one on this machine, which no agent can rewrite, lifts what no rule has said.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import selectors
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import field, replace
from pathlib import Path
from typing import IO, Any

from pawl.core.errors import Cancelled, ConfigError, PawlError, SandboxUnavailable
from pawl.core.execution import Ending, Execution, Limits
from pawl.core.lazy_dataclass import dataclass
from pawl.core.text import shortened
from pawl.sandbox.cancel import CancelToken
from pawl.sandbox.process_limits import tree_use
from pawl.settings import files as bounded
from pawl.settings.config import Config, host_path
from pawl.settings.files import passes, way_of
from pawl.settings.guardrails import Decision, Permission
from pawl.settings.hook_settings import HookCommand, HookEvent, hook_commands
from pawl.settings.permission_rules import PathBase, names_of
from pawl.settings.trust import FOLDER, hooks_of, joined_hooks, project_settings, trusted_files
from pawl.workspace.bench import Bench
from pawl.workspace.paths import held

MOST_BYTES = 1 << 20
"""Kept of each stream."""
MARK = "PAWL_HOOK"
_AFTER_EXIT_SECONDS = 0.5
"""How long output that is already written is waited for, when something that the hook left keeps the pipe open."""
_ROUNDS = 100
_PARTS = re.compile(r"[^\w./-]+")
"""Between words of a shell, of a list, and around the value of an option."""
_SHORT_OPTIONS = re.compile(r"-[A-Za-z0-9]+")
_NAMES_WORKSPACE = re.compile(r"(?:PAWL|CLAUDE)_PROJECT_DIR")
_HOME = re.compile(r"(?:~|\$HOME|\$\{HOME\})(?=/)")
_INTERPRETERS = 5
"""So many lines that name an interpreter the kernel follows."""
_LINE = re.compile(rb"#!([^\n\0]*)")
_SPLIT = re.compile(r"^(?:-\w*S|--split-string=)")
# On a machine without namespaces the bench stands at another path, which only the command itself sees.
_INSIDE = 'export PAWL_PROJECT_DIR="$PWD" CLAUDE_PROJECT_DIR="$PWD"; exec "$@"'
_STOPPED = {Ending.CANCELLED: "it was stopped", Ending.TIMED_OUT: "it timed out"}
_KEPT_VARIABLES = frozenset(
    {"HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TERM", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY"}
    | {"XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_SESSION_TYPE"}
    | {"DBUS_SESSION_BUS_ADDRESS"}
)
"""The user's variables that a hook on this machine gets, beside `LC_*` and PATH: none that loads code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEnded:
    """How a hook ended."""

    code: int | None
    """None when it was stopped."""
    stdout: str = ""
    stderr: str = ""
    stopped: str = ""
    """Why, when it did not end by itself."""


def run_on_bench(
    bench: Bench,
    argv: Sequence[str],
    payload: bytes,
    limits: Limits,
    cancel: CancelToken | None = None,
    hides: Callable[[str], bool] | None = None,
) -> HookEnded:
    """Runs the command in the sandbox, as any command of the run; files that it `hides` are shown empty."""
    execution = Execution(argv=("/bin/sh", "-c", _INSIDE, "hook", *argv), given=payload, limits=limits)
    done = bench.run(execution, cancel=cancel, hides=hides)
    why = done.notices[-1] if done.notices else f"{done.ending} {done.signal or ''}".strip()
    stopped = "" if done.ending is Ending.EXITED else _STOPPED.get(done.ending, why)
    return HookEnded(code=done.code, stdout=done.stdout.text, stderr=done.stderr.text, stopped=stopped)


def run_on_host(
    argv: Sequence[str],
    payload: bytes,
    *,
    seconds: float,
    environment: Mapping[str, str],
    cancel: CancelToken | None = None,
) -> HookEnded:
    """Runs the command on this machine until it ends, its time is up, or the user stops it."""
    with tempfile.TemporaryFile() as given:
        given.write(payload)
        given.seek(0)
        try:
            process, mark = started_on_host(argv, given, environment)
        except (OSError, ValueError) as error:
            return HookEnded(code=None, stopped=f"it cannot be started: {error}")
    assert process.stdout is not None and process.stderr is not None
    kept = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    with process:
        try:
            stopped = _followed(process.pid, kept, time.monotonic() + seconds, cancel)
        except BaseException:
            end_tree(process.pid, mark)
            raise
        if stopped:
            end_tree(process.pid, mark)
        code = process.wait()
    stdout, stderr = (bytes(one).decode("utf-8", "replace") for one in kept.values())
    return HookEnded(code=None if stopped else code, stdout=stdout, stderr=stderr, stopped=stopped)


def started_on_host(
    argv: Sequence[str], given: int | IO[bytes], environment: Mapping[str, str]
) -> tuple[subprocess.Popen[bytes], str]:
    """A program of the user's own settings on this machine, and the mark by which `end_tree` finds all it starts."""
    mark = secrets.token_hex(16)
    process = subprocess.Popen(
        list(argv),
        stdin=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",
        env={**environment, MARK: mark},
        start_new_session=True,
    )
    return process, mark


def _followed(pid: int, kept: Mapping[int, bytearray], deadline: float, cancel: CancelToken | None) -> str:
    """Reads what a hook writes until it has ended; why it has to be stopped, if it has.

    After its end nobody waits for processes that it left behind and that keep the pipes open.
    """
    has_ended = False
    with held(os.pidfd_open(pid)) as exited, selectors.DefaultSelector() as selector:
        for descriptor in (*kept, exited, *([] if cancel is None else [cancel.fileno()])):
            selector.register(descriptor, selectors.EVENT_READ)
        is_open = set(kept)
        while is_open or not has_ended:
            ready = {key.fd for key, _ in selector.select(max(0.0, deadline - time.monotonic()))}
            if cancel is not None and cancel.requested:
                return "" if has_ended else "it was stopped"
            for descriptor in is_open & ready:
                data = os.read(descriptor, 65_536)
                kept[descriptor] += data[: max(0, MOST_BYTES - len(kept[descriptor]))]
                if not data:
                    is_open.discard(descriptor)
                    selector.unregister(descriptor)
            if exited in ready:
                selector.unregister(exited)
                has_ended, deadline = True, time.monotonic() + _AFTER_EXIT_SECONDS
            elif time.monotonic() >= deadline:
                return "" if has_ended else "it timed out"
    return ""


def host_words(argv: Sequence[str], *, workspace: str, home: str, path: str) -> tuple[str, ...]:
    """The words that are started on this machine, the program by its real path; `ConfigError` where it may not be.

    `path`: the PATH that it is given, by which it finds other programs.
    """
    program, *words = argv
    program = home.rstrip("/") + program[1:] if program.startswith("~/") else program
    _refuse_inside([_HOME.sub(lambda _: home, word) for word in words], words, workspace, path)
    real = _checked_program(program, workspace)
    _check_interpreters(real, workspace, path)
    return (real, *words)


def _refuse_inside(expanded: Sequence[str], words: Sequence[str], workspace: str, path: str) -> None:
    for one, word in zip(expanded, words, strict=True):
        if _leads_into(one, workspace) or _found_inside(one, workspace, path):
            raise ConfigError(f"its argument {word!r:.200} leads into the workspace", advice="leave it out")


def _found_inside(word: str, workspace: str, path: str) -> bool:
    """Whether a part of the word is the name of a program that PATH finds in the workspace, through a link."""
    found = (shutil.which(part, path=path) for part in {word, *_PARTS.split(word)} if part and "/" not in part)
    return any(one is not None and passes(one, workspace) for one in found)


def _check_interpreters(program: str, workspace: str, path: str) -> None:
    """Hold what the first line of a script starts to the rules of the program itself."""
    for _ in range(_INTERPRETERS):
        words: list[str] = []
        with suppress(OSError), open(program, "rb") as file:
            line = _LINE.match(file.read(4096))
            words = os.fsdecode(line[1]).split() if line else []
        if not words:
            return
        _refuse_inside(words[1:], words[1:], workspace, path)
        program = _checked_program(os.path.join("/", words[0]), workspace)
        if os.path.basename(words[0]) == "env":
            named = (word for one in words[1:] if (word := _SPLIT.sub("", one)) and word[0] != "-" and "=" not in word)
            found = shutil.which(next(named, ""), path=path)
            if found is None:
                return
            program = _checked_program(found, workspace)


def host_environment(environment: Mapping[str, str], workspace: str) -> dict[str, str]:
    """The variables of a hook on this machine: no key, no code, no folder of the workspace."""
    kept = {
        name: value
        for name, value in environment.items()
        if (name in _KEPT_VARIABLES or name.startswith("LC_")) and not _leads_into(value, workspace)
    }
    path = host_path(environment, workspace)
    return {**kept, "PATH": path, "PAWL_PROJECT_DIR": workspace, "CLAUDE_PROJECT_DIR": workspace}


def _leads_into(word: str, workspace: str) -> bool:
    """Whether a path that is the word, or a part of it, passes the workspace: by its spelling or through links."""
    if _NAMES_WORKSPACE.search(word) or re.search(rf"{re.escape(workspace)}(?![\w.-])", word):
        return True
    for part in {word, *_PARTS.split(word)}:
        letters = _SHORT_OPTIONS.match(part)
        starts = {0, max(0, part.find("/")), part.find("=") + 1, *(range(2, letters.end() + 1) if letters else ())}
        # A relative path starts where the hook does, in `/`.
        if any(passes(f"/{part[start:]}", workspace) for start in starts):
            return True
    return False


def _checked_program(program: str, workspace: str) -> str:
    way = way_of(program)
    if passes(program, workspace):
        raise ConfigError(f"{program!r} leads through the workspace", advice="keep it outside of any workspace")
    real = os.path.realpath(program)
    try:
        status = os.stat(real)
    except OSError as error:
        why = error.strerror or "it cannot be inspected"
        raise ConfigError(f"{program!r}: {why}", advice="put its words into args; no shell reads it") from error
    if not stat.S_ISREG(status.st_mode) or not os.access(real, os.X_OK):
        raise ConfigError(f"{program!r} is not a program", advice="name a file that can be executed")
    if status.st_mode & 0o022 or status.st_uid not in (0, os.getuid()):
        raise ConfigError(f"others can write {real!r}", advice=f"chmod go-w {real}, and own it")
    for place in way:
        folder = os.path.dirname(place)
        found = os.stat(folder)
        writable = found.st_mode & (0o002 if found.st_uid == 0 else 0o022)
        if found.st_uid not in (0, os.getuid()) or (writable and not found.st_mode & stat.S_ISVTX):
            raise ConfigError(f"others can put another program into {folder!r}", advice="keep it in a folder of yours")
    return real


def end_tree(pid: int, mark: str) -> None:
    """Kills the process and all that came of it, also what left its group or its parent."""
    pause = threading.Event()
    for _ in range(_ROUNDS):
        alive = {*tree_use(pid).processes, *_marked(mark)}
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        for one in alive:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(one, signal.SIGKILL)
        if not alive:
            return
        pause.wait(0.01)


def _marked(mark: str) -> set[int]:
    """Processes with the hook's mark in their environment."""
    wanted, found = f"{MARK}={mark}".encode(), set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    found.add(int(folder.name))
    return found


MOST_CHARACTERS = 10_000
BLOCKS = 2
"""The exit code that says no."""
_NOT_RUN = 126
"""From here on a shell says that it found no program, or that a signal ended it."""
_OF_CALLS = frozenset({HookEvent.PRE_TOOL_USE, HookEvent.PERMISSION_REQUEST})
GUARDS = _OF_CALLS | {HookEvent.USER_PROMPT_SUBMIT}
"""Events at which a hook that could not start, or was stopped, counts as one that says no."""
CAN_BLOCK = frozenset(HookEvent) - {
    HookEvent.SESSION_START,
    HookEvent.SESSION_END,
    HookEvent.NOTIFICATION,
    HookEvent.POST_COMPACT,
    HookEvent.SUBAGENT_START,
}
SAYS_CONTEXT = frozenset({HookEvent.SESSION_START, HookEvent.USER_PROMPT_SUBMIT})
"""Events at which plain output is told to the model."""

IN_SANDBOX = (
    "hooks run in the sandbox, on a bench: without a network, your home and your variables; one that needs them takes "
    "host = true and a program by its absolute path"
)

Benches = Callable[[], AbstractContextManager[Bench]]
_DECISIONS = {
    "allow": Decision.ALLOW,
    "approve": Decision.ALLOW,
    "ask": Decision.ASK,
    "deny": Decision.DENY,
    "block": Decision.DENY,
}
_STRENGTH = (None, Decision.ALLOW, Decision.ASK, Decision.DENY)


@dataclass(frozen=True, slots=True, kw_only=True)
class HookOutcome:
    """The joint answer of all hooks of an event."""

    blocked: bool = False
    """The event must not go ahead; after a tool: the model is told the reason."""
    reason: str = ""
    permission: Decision | None = None
    """The strictest hook's word on the call; None when none says anything."""
    updated_input: Mapping[str, object] | None = None
    """Other arguments for the call, to be judged by the rules again."""
    context: tuple[str, ...] = ()
    """For the model."""
    messages: tuple[str, ...] = ()
    """For the user."""
    stop: bool = False
    """The run is to end."""
    stop_reason: str = ""
    notices: tuple[str, ...] = ()
    """Hooks that failed, which stops nothing."""
    remarks: tuple[str, ...] = ()
    """For the user, once in a run."""

    def and_then(self, other: HookOutcome) -> HookOutcome:
        """Both; what is stricter counts, and of two other arguments the later."""
        strictest = max(self.permission, other.permission, key=_STRENGTH.index)
        return HookOutcome(
            blocked=self.blocked or other.blocked,
            reason=shortened("\n".join(one for one in (self.reason, other.reason) if one), MOST_CHARACTERS),
            permission=strictest,
            updated_input=other.updated_input or self.updated_input,
            context=(*self.context, *other.context),
            messages=(*self.messages, *other.messages),
            stop=self.stop or other.stop,
            stop_reason=self.stop_reason or other.stop_reason,
            notices=(*self.notices, *other.notices),
            remarks=(*self.remarks, *other.remarks),
        )

    def over(self, permission: Permission) -> Permission:
        """The permission with what the hooks say: they tighten it, and lift only what no rule has said."""
        if self.blocked or self.permission is Decision.DENY:
            return replace(permission, ruling=Decision.DENY, reason=self.reason or "a hook denies it", firm=True)
        if self.permission is Decision.ASK and permission.allowed:
            return replace(permission, ruling=Decision.ASK, reason=self.reason or "a hook asks about it", firm=True)
        if self.permission is Decision.ALLOW and permission.ruling is Decision.ASK and not permission.firm:
            return replace(permission, ruling=Decision.ALLOW, reason=self.reason or "a hook allows it")
        return permission


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """The hooks of a workspace."""

    commands: tuple[HookCommand, ...] = ()
    workspace: str = ""
    home: str = ""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The user's, of which a hook on this machine is given a part."""
    limits: Callable[[float], Limits] = lambda seconds: Limits(seconds=seconds)
    """The limits of a hook that may take that many seconds."""
    common: Mapping[str, object] = field(default_factory=dict)
    """Told with every event: session_id, transcript_path, permission_mode."""
    notices: tuple[str, ...] = ()
    """Why hooks of the repository do not count."""

    def run(
        self,
        event: HookEvent | str,
        payload: Mapping[str, object] | None = None,
        *,
        bench: Benches,
        cancel: CancelToken | None = None,
        hides: Callable[[str], bool] | None = None,
    ) -> HookOutcome:
        """Runs every hook that is meant, one after the other: they share the bench, which is opened for the first."""
        event = HookEvent(event)
        body = {**self.common, **(payload or {}), "cwd": self.workspace, "hook_event_name": str(event)}
        if "tool_name" in body:
            body["tool_names"] = list(names_of(str(body["tool_name"])))
        place = PathBase(self.workspace, self.home)
        given = json.dumps(body, default=str).encode()
        outcome = HookOutcome()
        with ExitStack() as opened:
            stands: Bench | None = None
            for command in self.commands:
                if command.event is not event or not command.is_meant(body, place):
                    continue
                try:
                    if stands is None and not command.host:
                        stands = opened.enter_context(bench())
                    if stands is not None and not command.host:
                        limits = self.limits(command.seconds)
                        ended = run_on_bench(stands, command.argv, given, limits, cancel, hides)
                    else:
                        words, own = self.host_call(command)
                        ended = run_on_host(words, given, seconds=command.seconds, environment=own, cancel=cancel)
                except PawlError as error:
                    if isinstance(error, SandboxUnavailable) and event in CAN_BLOCK:
                        # What nobody could say no to does not happen.
                        raise
                    stopped = f"it cannot be started: {error.message}; {error.advice}"
                    ended = HookEnded(code=None, stopped=error.message if isinstance(error, Cancelled) else stopped)
                outcome = outcome.and_then(said(command, ended))
        return outcome

    def host_call(self, command: HookCommand) -> tuple[tuple[str, ...], dict[str, str]]:
        """The words and the variables of a hook on this machine; `ConfigError` where it may not be started."""
        environment = host_environment(self.environment, self.workspace)
        return host_words(command.argv, workspace=self.workspace, home=self.home, path=environment["PATH"]), environment

    def about(self, **common: object) -> Hooks:
        """The same hooks, told this with every event."""
        return replace(self, common={**self.common, **common})


def hooks_for(config: Config, workspace: str) -> Hooks:
    """The user's hooks, and the repository's if the user trusts it."""
    shared = config.file.parent / "hooks.json"
    text = bounded.read_bytes(shared).decode("utf-8", "replace") if shared.is_file() else ""
    own = joined_hooks(config.tables.hooks, hooks_of(text, str(shared)))
    commands = hook_commands(own, str(config.file), own=True)
    notices: tuple[str, ...] = ()
    trusted = trusted_files(config, workspace)
    if trusted is not None:
        commands += hook_commands(project_settings(workspace, trusted).hooks, FOLDER)
    elif _has_hooks(workspace):
        notices = (f"the hooks in {FOLDER} are not run, because the folder is not trusted ('pawl trust')",)
    return Hooks(
        commands=commands,
        workspace=workspace,
        home=str(config.home),
        environment=config.environment,
        limits=config.settings.limits,
        notices=notices,
    )


def _has_hooks(workspace: str) -> bool:
    try:
        return bool(project_settings(workspace).hooks)
    except ConfigError:
        return True


def said(command: HookCommand, ended: HookEnded) -> HookOutcome:
    """One hook's answer, from how it ended and what it wrote."""
    name = shortened(command.command, 80)
    if command.host:
        told = f"the hook {name!r} of your settings runs on this machine, outside of the sandbox (host = true)"
        return replace(_said(command, ended, name), remarks=(told,))
    return _said(command, ended, name)


def _said(command: HookCommand, ended: HookEnded, name: str) -> HookOutcome:
    if ended.code == 0:
        return _answer(command, ended.stdout)
    if ended.code == BLOCKS:
        reason = shortened(ended.stderr.strip(), MOST_CHARACTERS) or f"the hook {name!r} says no"
        if command.event not in CAN_BLOCK:
            return HookOutcome(messages=(reason,))
        return _denied(command, reason)
    why = ended.stopped or f"it ended with {ended.code}: {shortened(ended.stderr.strip(), 400)}"
    if command.event in GUARDS and (ended.code is None or not 0 <= ended.code < _NOT_RUN):
        missing = ended.code in (126, 127) and not command.host
        remedy = "give it host = true and an absolute program, or put it into the workspace" if missing else "fix it"
        reason = f"the hook {name!r} could not decide, which counts as no; {remedy}: {why}"
        return replace(_denied(command, reason), notices=(reason,))
    more = f"; {IN_SANDBOX}" if ended.code in (126, 127) and command.is_own and not command.host else ""
    return HookOutcome(notices=(f"the hook {name!r} at {command.event} failed: {why}{more}",))


def _denied(command: HookCommand, reason: str) -> HookOutcome:
    permission = Decision.DENY if command.event in _OF_CALLS else None
    return HookOutcome(blocked=True, reason=reason, permission=permission)


def _answer(command: HookCommand, text: str) -> HookOutcome:
    """Reads stdout: JSON, or at some events plain text for the model."""
    plain = text.strip()
    try:
        body = json.loads(plain) if plain.startswith("{") else None
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        told = plain and command.event in SAYS_CONTEXT
        return HookOutcome(context=(shortened(plain, MOST_CHARACTERS),) if told else ())
    specific = body.get("hookSpecificOutput")
    specific = specific if isinstance(specific, dict) else {}
    ruling, reason, updated = _decision(command.event, body, specific)
    goes_on = body.get("continue", True) is not False
    # An agent may have written what ran on the bench: it cannot give itself what the user would be asked about.
    counts = command.event in _OF_CALLS and (command.host or ruling is not Decision.ALLOW)
    return HookOutcome(
        blocked=ruling is Decision.DENY and command.event in CAN_BLOCK,
        reason=reason if counts or ruling is not Decision.ALLOW else "",
        permission=ruling if counts else None,
        updated_input=updated,
        context=tuple(_texts(specific, body, key="additionalContext")),
        messages=tuple(_texts(body, key="systemMessage")),
        stop=not goes_on,
        stop_reason="" if goes_on else next(_texts(body, key="stopReason"), ""),
    )


def _decision(
    event: HookEvent, body: Mapping[str, Any], specific: Mapping[str, Any]
) -> tuple[Decision | None, str, Mapping[str, object] | None]:
    """The ruling, why, and other arguments; from any of the places where hooks write it."""
    inner = specific.get("decision")
    inner = inner if isinstance(inner, dict) else {}
    words = (specific.get("permissionDecision"), inner.get("behavior"), body.get("decision"))
    ruling = next((_DECISIONS[word] for word in words if isinstance(word, str) and word in _DECISIONS), None)
    reasons = (specific.get("permissionDecisionReason"), inner.get("message"), body.get("reason"))
    reason = next((shortened(one, MOST_CHARACTERS) for one in reasons if isinstance(one, str) and one), "")
    inputs = (specific.get("updatedInput"), inner.get("updatedInput"))
    updated = next((one for one in inputs if isinstance(one, dict)), None)
    takes = event in _OF_CALLS and ruling is not Decision.DENY
    return ruling, reason, updated if takes else None


def _texts(*tables: Mapping[str, Any], key: str) -> Iterator[str]:
    for table in tables:
        value = table.get(key)
        if isinstance(value, str) and value.strip():
            yield shortened(value, MOST_CHARACTERS)


def hooks_notice(config: Config, workspace: str) -> str:
    """That hooks have their say too, which only a real call would tell; empty without such hooks."""
    if not any(one.event in _OF_CALLS for one in hooks_for(config, workspace).commands):
        return ""
    return "hooks are asked about each call as well, and may refuse it, allow it or change it"
