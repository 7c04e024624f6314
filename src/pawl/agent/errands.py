"""What a request may ask for besides a change: a question, a command, an undo, what Pawl can do, the reflex."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace

from pawl.agent.events import Event
from pawl.agent.inbox import Inbox
from pawl.agent.intents import examples
from pawl.agent.record import RunRecord
from pawl.agent.run_hooks import Hooking
from pawl.checks.output import printed
from pawl.checks.project import CheckKind
from pawl.checks.verifier import CHECKS, Verifier
from pawl.core.change import EMPTY, ChangeSet
from pawl.core.diagnostic import Check, CheckResult, Diagnostic, Status
from pawl.core.errors import CannotFix, HookRefused, NoTests, UsageError
from pawl.core.events import Steered
from pawl.core.guardrails import Decision
from pawl.core.run import Intent, Reasoning
from pawl.sandbox.cancel import CancelToken
from pawl.workspace.commands import CommandRequest, keep, run_on_bench
from pawl.workspace.history import Wish
from pawl.workspace.project import Project

COMMAND_TOOL = "run_command"
NOTHING_FAILS = "nothing fails"
MOST_SHOWN = 20
MOST_OUTPUT = 20_000
EXIT = {"answered": 0, "out_of_turns": 53, "out_of_time": 53}
_CHECKS = {"tests": (CheckKind.TESTS,), "lint": CHECKS[Check.LINT], "types": CHECKS[Check.TYPECHECK]}
ABOUT = {
    Intent.READ: "answers questions about the workspace, from its files",
    Intent.EDIT: "changes code on a bench, verifies it, shows it, promotes it when you say so",
    Intent.MEND: "repairs failing tests by search, with no model; what that leaves goes to a model",
    Intent.RUN: "runs tests, linters and commands in a sandbox",
    Intent.UNDO: "takes back what it did",
    Intent.PROFILE: "says what it can do",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """The result of a request that needs no change of ours."""

    text: str
    exit_code: int = 0
    ended: str = ""
    verdicts: tuple[CheckResult, ...] = ()
    kept: int | None = None
    entry: int | None = None
    conversation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """Carries out what needs no change of ours, and the reflex."""

    shop: Project
    record: RunRecord
    verifier: Verifier
    conversation: str
    inbox: Inbox
    hooking: Hooking
    listen: Callable[[Event], None]
    cancel: CancelToken | None = None

    def read(self) -> Action:
        from pawl.agent import asking

        order = self.record.order
        question = asking.AskRequest(
            text=order.text,
            model=order.model,
            reasoning=Reasoning(order.reasoning) if order.reasoning else None,
            budget=order.budget,
            conversation=self.conversation if self.record.value("said before") else "",
            new_conversation=self.conversation,
            heard=self._heard(),
        )
        replied = asking.ask(self.shop, question, self.listen, self.cancel)
        ended = replied.spoken.ended
        return Action(
            text=replied.spoken.text,
            exit_code=EXIT.get(ended, 1),
            ended=ended,
            conversation=replied.conversation,
        )

    def _heard(self) -> Callable[[], tuple[str, ...]]:
        """Takes what the user says meanwhile. A question that is asked again hears again what was said before."""
        known = self.record.value("steered")
        before = [str(one) for one in known] if isinstance(known, list) else []
        waiting = list(before)

        def heard() -> tuple[str, ...]:
            said = self.inbox.take_words()
            if said:
                before.extend(said)
                self.record.put("steered", list(before))
                for text in said:
                    self.listen(Steered(text))
            every = (*waiting, *said)
            waiting.clear()
            return every

        return heard

    def run(self, command: str) -> Action:
        """With the hooks that a model's call of the same would have."""
        given, call = {"command": command}, f"{self.record.run}.run"
        outcome = self.hooking.before_tool(COMMAND_TOOL, given, call)
        if outcome is not None:
            if outcome.blocked or outcome.permission is Decision.DENY:
                raise HookRefused(f"a hook denies {command!r}: {outcome.reason}", advice="see [hooks] in settings.md")
            command = str((outcome.updated_input or given).get("command", command))
        errand = self._ran(command)
        failed = errand.exit_code != 0
        told = self.hooking.after_tool(COMMAND_TOOL, {"command": command}, errand.text, failed=failed, call=call)
        return replace(errand, text=f"{errand.text}{told}") if told else errand

    def _ran(self, command: str) -> Action:
        return _checked(self.verifier.check(_CHECKS[command])) if command in _CHECKS else self._command(command)

    def undo(self) -> Action:
        reversal = self.shop.undo(None, Wish())
        paths = ", ".join(sorted(reversal.changes.paths))
        entry = None if reversal.promotion is None else reversal.promotion.entry
        return Action(text=f"{reversal.title}: {paths}", entry=entry)

    def profile(self) -> Action:
        lines = ["Pawl changes code on a bench, promotes what was verified, and takes anything back.", ""]
        said: dict[Intent, str] = {}
        for intent, example in examples():
            said.setdefault(intent, example)
        lines += [f"- {intent}: {about}, such as {said[intent]!r}" for intent, about in ABOUT.items()]
        lines += ["", "Commands: pawl --help. Models: pawl models. What each role may do: pawl policy."]
        return Action(text="\n".join(lines))

    def mend(self) -> tuple[ChangeSet, str, str]:
        """The reflex's changes; without any, why it found none and what to do about it."""
        from pawl.repair.fixer import fix
        from pawl.repair.model import FixOutcome, FixRequest

        try:
            request = FixRequest(
                test_command=self.record.order.test_command,
                seconds=self.shop.config.settings.fix_seconds,
                dry_run=True,
            )
            report = fix(self.shop, request, self.listen)
        except (NoTests, CannotFix) as error:
            return EMPTY, error.message, error.advice
        if report.outcome is FixOutcome.NOTHING_FAILS:
            return EMPTY, NOTHING_FAILS, ""
        if report.outcome is not FixOutcome.FIXED:
            return EMPTY, report.reason or str(report.outcome), report.advice
        return report.changes, "", ""

    def _command(self, command: str) -> Action:
        """In the sandbox; what it changed is kept as an entry and not promoted."""
        try:
            words = tuple(shlex.split(command))
        except ValueError as error:
            raise UsageError(f"the command {command!r} cannot be read: {error}", advice="close the quotes") from error
        if not words:
            raise UsageError("it is not clear what is to be run", advice="name the command, such as 'run main.py'")
        seconds = self.shop.config.settings.run_seconds
        # A shell reads it, as it would for the user; it is confined like any other command.
        request = CommandRequest(argv=words if _is_plain(command) else ("/bin/sh", "-c", command), seconds=seconds)
        ran = run_on_bench(self.shop, request, cancel=self.cancel)
        landing = keep(self.shop, ran)
        code = ran.completed.code if ran.completed.code is not None else 1
        return Action(text=printed(ran.completed)[-MOST_OUTPUT:], exit_code=code, kept=landing.kept)


def _is_plain(command: str) -> bool:
    return not any(sign in command for sign in "|&;<>$`*?(){}~\n")


def _checked(verdicts: tuple[CheckResult, ...]) -> Action:
    lines = []
    for verdict in verdicts:
        lines.append(f"{verdict.step}: {verdict.standing}" + (f", {verdict.reason}" if verdict.reason else ""))
        lines += [_line(finding) for finding in verdict.findings[:MOST_SHOWN]]
        if len(verdict.findings) > MOST_SHOWN:
            lines.append(f"  … and {len(verdict.findings) - MOST_SHOWN} more")
    bad = any(verdict.standing is not Status.PASS for verdict in verdicts)
    return Action(text="\n".join(lines), exit_code=int(bad), verdicts=verdicts)


def _line(finding: Diagnostic) -> str:
    place = ":".join(str(part) for part in (finding.path, finding.line) if part)
    first = finding.message.strip().splitlines()[0] if finding.message.strip() else ""
    return "  " + " ".join(part for part in (finding.test or place, finding.label, first) if part)
