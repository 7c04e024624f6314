"""A test for a target that has none, made before the climb: from its behaviour, else by the model (E7).

Examples in its docstrings say what must hold. What its functions give today, in the calls that other tests and the
examples make, must hold where the user asks for no other behaviour; for everything else it would pin the mistake.
It is used only if it collects, runs and asserts something on a bench; whatever goes wrong is warned about, no more.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from pawl.app.doing.climbing.calling import answered, callables, described
from pawl.app.doing.climbing.climb_record import GROUND, ClimbRecord
from pawl.app.doing.talking import Talker
from pawl.app.doing.verifying import Verifier, readable_tools
from pawl.app.running import open_bench
from pawl.app.workshop import Workshop
from pawl.core.change import EMPTY, ChangeSet
from pawl.core.climb_event import Warned
from pawl.core.errors import Cancelled, PawlError, SandboxUnavailable, StoreError
from pawl.core.finding import Standing
from pawl.core.ports import Files
from pawl.core.run import RoleName, Stage
from pawl.workflow.climbing import test_files
from pawl.workflow.climbing.summaries import bounded
from pawl.workflow.workbench import Line

GENERATED = "climb generated"
MOST_SHOWN = 6_000
MOST_STYLES = 2
MOST_SCRIPTS = 5
_BLOCK = re.compile(r"```[\w+-]*[ \t]*\n(.*?)\n```", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator:
    shop: Workshop
    record: ClimbRecord
    talker: Talker
    listen: Callable[[Warned], object]

    def verifier(self, verifier: Verifier) -> Verifier:
        """The verification, scoped to the test that was made, or as it was."""
        order = self.record.base.order
        if not order.loop.get("generate") or not self.record.target or verifier.test_command:
            return verifier
        known = self.record.base.value(GENERATED)
        if known is None:
            try:
                known = self._made(verifier)
            except (Cancelled, StoreError, SandboxUnavailable):
                raise
            except PawlError as error:
                self.listen(Warned(f"no test was made for {self.record.target}: {error.message}"))
                known = {}
            self.record.base.put(GENERATED, known)
        command = known.get("command") if isinstance(known, dict) else None
        return replace(verifier, test_command=tuple(command)) if command else verifier

    def _made(self, verifier: Verifier) -> dict[str, object]:
        """The test on the ground of the climb, and its command; empty where there is a test, or none is made."""
        target = self.record.target
        if test_files.naming_of(target) is None:
            return {}
        with open_bench(self.shop, extra_readonly=readable_tools()) as bench:
            paths = list(bench.files.walk())
            tests = {path: _text(bench.files, path) for path in paths if test_files.is_test(path)}
            if test_files.known_tests(target, paths, tests):
                return {}
            path = test_files.new_test(target, paths)
            text = self._behaviour(verifier, target, _text(bench.files, target), paths)
            text = text or self._asked(target, path, _text(bench.files, target), list(tests.items()))
            if not text or not test_files.asserts_something(target, text):
                self.listen(Warned(f"no test was made for {target}: nothing was asserted"))
                return {}
            bench.files.write(path, text.encode())
            changes = bench.capture().changes
        return self._tried(verifier, changes, path)

    def _behaviour(self, verifier: Verifier, target: str, source: str, paths: list[str]) -> str:
        """Without a model, in Python."""
        if not target.endswith(".py"):
            return ""
        text = test_files.from_examples(target, source)
        if text or not test_files.keeps_behaviour(self.record.objective):
            return text
        functions = [described(target, name) for name in callables(source) if not "".join(name).startswith("_")]
        scripts = [path for path in paths if path.startswith("examples/") and path.endswith(".py")]
        said = answered(verifier, EMPTY, functions, record=True, scripts=scripts[:MOST_SCRIPTS]) if functions else {}
        return test_files.from_calls(target, said.get("calls", []))

    def _tried(self, verifier: Verifier, changes: ChangeSet, path: str) -> dict[str, object]:
        command = test_files.scoped_command(self.record.target, path)
        verdict = replace(verifier, test_command=command).tests(changes)
        counts = verdict.counts
        if verdict.standing is Standing.SKIPPED or counts is None or not counts.total or counts.errors:
            self.listen(Warned(f"the test made for {self.record.target} cannot be run: {verdict.reason}"))
            return {}
        if verdict.standing is Standing.PASS and not test_files.keeps_behaviour(self.record.objective):
            told = f"the test made for {self.record.target} passes already: it does not show what is wanted"
            self.listen(Warned(told))
        self.record.base.keep_work(GROUND, changes)
        return {"path": path, "command": list(command)}

    def _asked(self, target: str, path: str, source: str, styles: list[tuple[str, str]]) -> str:
        if not self.talker.configured:
            return ""
        parts = [
            f"Write the file {path}, which tests {target}.",
            f"What is wanted: {self.record.objective}" if self.record.objective else "",
            f"{target}:\n```\n{bounded(source.splitlines(), MOST_SHOWN)}\n```",
            *(f"Tests here look like this, {name}:\n```\n{bounded(text.splitlines(), MOST_SHOWN // 3)}\n```"
              for name, text in styles[:MOST_STYLES]),
            "Answer with the whole file in one code block. Assert what must hold by the request and the code's words.",
        ]  # fmt: skip
        line = Line(talk="climb test", role=RoleName.ARTISAN, text="\n\n".join(filter(None, parts)), stage=Stage.DRAFT)
        found = _BLOCK.findall(self.talker.say(line).text)
        return f"{found[0].rstrip()}\n" if found else ""


def _text(files: Files, path: str) -> str:
    try:
        return files.read(path).decode("utf-8", "replace")
    except (PawlError, OSError):
        return ""
