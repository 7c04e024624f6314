"""Tests that a climb makes by itself: one for a target that has none, and one for what breaks a change (E7, E2).

Before the climb: examples in the docstrings of the target say what must hold. What its functions give today, in the
calls that other tests and the examples make, must hold where the user asks for no other behaviour; for everything else
it would pin the mistake. Else a model is asked. The test is used only if it collects, runs and asserts something on a
bench; whatever goes wrong is warned about, no more.

Chaos: what was verified is attacked with inputs nobody wrote down before it counts. Without a model first: the calls of
the tests, changed a little, go to the code before and after. What gave a value and now crashes refuses the attempt.
Then the chaos role names inputs, which go the same way; what it expects is words. A counterexample becomes a failing
test, kept as an entry.
"""

from __future__ import annotations

import ast
import doctest
import functools
import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pawl.agent.briefing import bounded, shown_diff
from pawl.agent.climb_record import ClimbRecord, Tried
from pawl.agent.context import TurnInput
from pawl.agent.record import GeneratedTest, WorkName
from pawl.agent.talker import Talker
from pawl.agent.workplace import Workplace
from pawl.checks.catalog import Framework, detect, of_files, test_files
from pawl.checks.lsp.verdicts import readable
from pawl.checks.runners import launched
from pawl.checks.verifier import Verifier, added_by
from pawl.code.languages import is_test, language_of
from pawl.core.change import EMPTY, Change, ChangeSet, EntryKind, Node
from pawl.core.diagnostic import Status
from pawl.core.errors import (
    AnswerUnusable,
    BudgetExceeded,
    Cancelled,
    PawlError,
    RequestRejected,
    SandboxUnavailable,
    SchemaUnmet,
    StoreError,
)
from pawl.core.events import EscalationWarned
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import RoleName, Stage
from pawl.core.tiers import AttemptEnd
from pawl.core.typed import Unreadable, data_table, read_json, read_python
from pawl.workspace.bench_files import Files
from pawl.workspace.benches import open_bench
from pawl.workspace.project import Project

if TYPE_CHECKING:
    from pawl.agent import contract_models


_SOURCES = ("src/", "lib/")


@dataclass(frozen=True, slots=True, kw_only=True)
class TestNaming:
    """How tests are called in a language."""

    known: tuple[str, ...]
    made: str
    folder: str
    command: tuple[str, ...]
    runner: bool
    asserts: tuple[re.Pattern[str], ...]


@functools.cache
def namings() -> Mapping[str, TestNaming]:
    return MappingProxyType(
        {
            ending: TestNaming(
                known=tuple(row["known"]),
                made=row["made"],
                folder=row["folder"],
                command=tuple(row["command"]),
                runner=row.get("runner", False),
                asserts=tuple(re.compile(one, re.MULTILINE) for one in row["asserts"]),
            )
            for ending, row in data_table("pawl.agent", "test_files.toml").items()
        }
    )


def naming_of(target: str) -> TestNaming | None:
    """None for a language in which no test is made."""
    return namings().get(target.rpartition(".")[2]) if "." in target else None


def known_tests(target: str, paths: Iterable[str], texts: Mapping[str, str]) -> tuple[str, ...]:
    """The tests of the target: by their names, and in Python by what they import."""
    naming = naming_of(target)
    if naming is None:
        return ()
    stem = _stem(target)
    names = {name.format(stem=stem) for name in naming.known}
    found = [path for path in paths if path.rpartition("/")[2] in names]
    if target.endswith(".py"):
        words = re.compile(rf"^[ \t]*(?:from|import)\s+(?:[\w.]+\.)?{re.escape(stem)}\b", re.MULTILINE)
        of_names = re.compile(rf"^[ \t]*from\s+[\w.]*\s+import\s+.*\b{re.escape(stem)}\b", re.MULTILINE)
        found += [path for path, text in texts.items() if words.search(text) or of_names.search(text)]
    return tuple(dict.fromkeys(found))


def new_test(target: str, paths: Iterable[str]) -> str:
    """The path of a test to be made: in the folder of tests where there is one, else beside the target."""
    naming = naming_of(target)
    assert naming is not None
    name = naming.made.format(stem=_stem(target))
    if naming.folder and any(path.startswith(f"{naming.folder}/") for path in paths):
        return f"{naming.folder}/{name}"
    folder = target.rpartition("/")[0]
    return f"{folder}/{name}" if folder else name


def scoped_command(target: str, path: str, own: Framework | None = None) -> tuple[str, ...]:
    """The command that runs one file of tests, by the project's own framework where it finds such files."""
    naming = naming_of(target)
    assert naming is not None
    if naming.runner and own is not None and test_files(own, [path]):
        return of_files(own, [path])
    return tuple(word.format(path=path) for word in naming.command)


def asserts_something(target: str, text: str) -> bool:
    naming = naming_of(target)
    return naming is not None and any(pattern.search(text) for pattern in naming.asserts)


def module_of(target: str) -> str:
    """The name under which a Python file is imported, as far as its path tells."""
    path = target.removesuffix(".py").removesuffix("/__init__")
    for folder in _SOURCES:
        path = path.removeprefix(folder)
    return path.replace("/", ".")


def from_examples(target: str, source: str) -> str:
    """A test for each docstring of a Python file that shows examples; empty where none does."""
    try:
        tree = read_python(source)
    except Unreadable:
        return ""
    tests = [made for name, text in _docstrings(tree) if (made := _test(name, text))]
    if not tests:
        return ""
    raises = ["import pytest"] if any("pytest.raises" in test for test in tests) else []
    head = [f'"""The examples in the docstrings of {target}, as tests."""', "", *raises]
    return "\n".join((*head, f"from {module_of(target)} import *", "", "", "\n\n\n".join(tests), ""))


@functools.cache
def _behaviour() -> tuple[re.Pattern[str], re.Pattern[str]]:
    table = data_table("pawl.agent", "behaviour.toml")
    joined = ("|".join(f"(?:{one})" for one in table[name]) for name in ("patterns", "others"))
    keeps, others = (re.compile(one, re.IGNORECASE) for one in joined)
    return keeps, others


def keeps_behaviour(objective: str) -> bool:
    """Whether what a file does today is to stay, by the words of the objective."""
    keeps, others = _behaviour()
    return keeps.search(objective.strip()) is not None and others.search(objective) is None


def from_calls(target: str, calls: Iterable[Mapping[str, str]]) -> str:
    """A test for each function or class whose calls were recorded with their values; empty where none was."""
    by_root: dict[str, list[str]] = {}
    for one in calls:
        by_root.setdefault(one["root"], []).append(f"    assert {one['call']} == {one['value']}")
    if not by_root:
        return ""
    head = [f'"""What {target} gives today, in calls that tests and examples make."""', ""]
    head += [f"from {module_of(target)} import {', '.join(sorted(by_root))}"]
    tests = ["\n".join((f"def test_calls_of_{root.lower()}():", *lines)) for root, lines in by_root.items()]
    return "\n\n\n".join(("\n".join(head), *tests)) + "\n"


def _docstrings(tree: ast.Module) -> Iterable[tuple[str, str]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, ast.get_docstring(node) or ""


def _test(name: str, text: str) -> str:
    """The examples of one docstring in their order; an example that shows no result is only carried out."""
    try:
        examples = doctest.DocTestParser().get_examples(text)
    except ValueError:
        return ""
    lines: list[str] = []
    for example in examples:
        code, want = example.source.strip("\n"), example.want.strip("\n")
        if example.exc_msg is not None:
            kind = example.exc_msg.partition(":")[0].strip().rpartition(".")[2]
            lines += [f"with pytest.raises({kind}):", *(f"    {line}" for line in code.splitlines())]
        elif want and "\n" not in want and _is_expression(code):
            lines.append(f"assert repr({code}) == {want!r}")
        elif not want:
            lines += code.splitlines()
        else:
            return ""
    if not any(line.startswith(("assert ", "with ")) for line in lines):
        return ""
    return "\n".join((f"def test_examples_of_{name.lower()}():", *(f"    {line}" for line in lines)))


def _is_expression(code: str) -> bool:
    try:
        read_python(code, mode="eval")
    except Unreadable:
        return False
    return True


def _stem(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[0]


ORDER = "pawl_attack.json"


def callables(source: str) -> dict[tuple[str, str], str]:
    """The functions of a file and the methods of its classes, by class and name, with their text; none in bad code."""
    try:
        tree = read_python(source)
    except Unreadable:
        return {}
    found: dict[tuple[str, str], str] = {}
    for node in tree.body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        owner = node.name if isinstance(node, ast.ClassDef) else ""
        for one in inner:
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
                found[owner, one.name] = ast.unparse(one)
    return found


def described(path: str, name: tuple[str, str]) -> dict[str, Any]:
    """A callable as the script takes it."""
    return {"path": path, "module": module_of(path), "owner": name[0], "name": name[1]}


def answered(
    verifier: Verifier, changes: ChangeSet, functions: Sequence[Mapping[str, Any]], **more: object
) -> dict[str, Any]:
    """Run the script on a bench with the changes; nothing where it cannot be run."""
    script = (resources.files("pawl.agent") / "inside" / "attack.py").read_text(encoding="utf-8")
    tests = [word for word in verifier.test_command if word.endswith(".py") or "::" in word]
    order = json.dumps({"functions": list(functions), "tests": tests, **more}).encode()
    with verifier.bench(changes) as (bench, _):
        bench.files.write(ORDER, order)
        subject = verifier.subject(bench.files, bench)
        words = (subject.python, "-c", script, ORDER)
        completed = subject.run(launched(subject.files, words, added_by(changes)))
    if completed is None or not completed.ok:
        return {}
    try:
        said = read_json(completed.stdout.text.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return {}
    return said if isinstance(said, dict) else {}


MOST_SHOWN = 6_000
MOST_STYLES = 2
MOST_SCRIPTS = 5
_BLOCK = re.compile(r"```[\w+-]*[ \t]*\n(.*?)\n```", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class TestGenerator:
    shop: Project
    record: ClimbRecord
    talker: Talker
    listen: Callable[[EscalationWarned], object]

    def verifier(self, verifier: Verifier) -> Verifier:
        """The verification, scoped to the test that was made, or as it was."""
        order = self.record.base.order
        if not order.loop.get("generate") or not self.record.target or verifier.test_command:
            return verifier
        base = self.record.base
        known = base.data.generated
        if known is None:
            try:
                known = self._made(verifier)
            except (Cancelled, StoreError, SandboxUnavailable):
                raise
            except PawlError as error:
                self.listen(EscalationWarned(f"no test was made for {self.record.target}: {error.message}"))
                known = GeneratedTest()
            base.keep(replace(base.data, generated=known))
        return replace(verifier, test_command=known.command) if known.command else verifier

    def _made(self, verifier: Verifier) -> GeneratedTest:
        """The test on the ground of the climb, and its command; empty where there is a test, or none is made."""
        target = self.record.target
        gate = self.shop.read_gate()
        if naming_of(target) is None:
            return GeneratedTest()
        if not gate.shows(target):
            self.listen(EscalationWarned(f"no test was made for {target}: it may not be read"))
            return GeneratedTest()
        with open_bench(self.shop, extra_readonly=readable()) as bench:
            paths = list(bench.files.walk())
            tests = {path: _text(bench.files, path) for path in paths if is_test(path) and language_of(path)}
            if known_tests(target, paths, tests):
                return GeneratedTest()
            path = new_test(target, paths)
            command = scoped_command(target, path, detect(bench.files).framework)
            text = self._behaviour(verifier, target, _text(bench.files, target), paths)
            styles = [(name, known) for name, known in tests.items() if gate.shows(name)]
            guessed = not text
            text = text or self._asked(target, path, _text(bench.files, target), styles, command)
            if not text or not asserts_something(target, text):
                self.listen(EscalationWarned(f"no test was made for {target}: nothing was asserted"))
                return GeneratedTest()
            bench.files.write(path, text.encode())
            changes = bench.capture().changes
        return replace(self._tried(verifier, changes, path, command), guessed=guessed)

    def _behaviour(self, verifier: Verifier, target: str, source: str, paths: list[str]) -> str:
        """Without a model, in Python."""
        if not target.endswith(".py"):
            return ""
        text = from_examples(target, source)
        if text or not keeps_behaviour(self.record.objective):
            return text
        functions = [described(target, name) for name in callables(source) if not "".join(name).startswith("_")]
        scripts = [path for path in paths if path.startswith("examples/") and path.endswith(".py")]
        said = answered(verifier, EMPTY, functions, record=True, scripts=scripts[:MOST_SCRIPTS]) if functions else {}
        return from_calls(target, said.get("calls", []))

    def _tried(self, verifier: Verifier, changes: ChangeSet, path: str, command: tuple[str, ...]) -> GeneratedTest:
        verdict = replace(verifier, test_command=command).tests(changes)
        counts = verdict.counts
        if verdict.standing is Status.SKIPPED or counts is None or not counts.total or counts.errors:
            self.listen(EscalationWarned(f"the test made for {self.record.target} cannot be run: {verdict.reason}"))
            return GeneratedTest()
        if verdict.standing is Status.PASS and not keeps_behaviour(self.record.objective):
            told = f"the test made for {self.record.target} passes already: it does not show what is wanted"
            self.listen(EscalationWarned(told))
        self.record.base.keep_work(WorkName.GROUND, changes)
        return GeneratedTest(path=path, command=command)

    def _asked(
        self, target: str, path: str, source: str, styles: list[tuple[str, str]], command: tuple[str, ...]
    ) -> str:
        if not self.talker.configured:
            return ""
        parts = [
            f"Write the file {path}, which tests {target} and is run with `{shlex.join(command)}`.",
            f"What is wanted: {self.record.objective}" if self.record.objective else "",
            f"{target}:\n```\n{bounded(source.splitlines(), MOST_SHOWN)}\n```",
            *(f"Tests here look like this, {name}:\n```\n{bounded(text.splitlines(), MOST_SHOWN // 3)}\n```"
              for name, text in styles[:MOST_STYLES]),
            "Answer with the whole file in one code block. Assert what must hold by the request and the code's words.",
        ]  # fmt: skip
        line = TurnInput(
            talk="climb test", role=RoleName.ARTISAN, text="\n\n".join(filter(None, parts)), stage=Stage.DRAFT
        )
        found = _BLOCK.findall(self.talker.say(line).text)
        return f"{found[0].rstrip()}\n" if found else ""


def _text(files: Files, path: str) -> str:
    try:
        return files.read(path).decode("utf-8", "replace")
    except (PawlError, OSError):
        return ""


MOST_DIFF = 12_000
_NOBODY_ANSWERS = (AnswerUnusable, BudgetExceeded, RequestRejected, SchemaUnmet)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """A call that crashes now and did not before."""

    module: str
    root: str
    """The name to import: the function, or the class."""
    name: str
    call: str
    error: str

    @property
    def text(self) -> str:
        return f"chaos: {self.call} returned a value before, and now: {self.error}"


def attacked(shop: Project, verifier: Verifier, place: Workplace, tried: Tried) -> Tried:
    """The attempt as it was, or refused with what broke it; what could not be attacked is told."""
    if tried.attempt.end is not AttemptEnd.VERIFIED:
        return tried
    shown = shop.read_gate().shown(tried.changes)
    functions = list(_changed(shop, shown))
    left = _foreign(shown)
    left += [f"{path}: it may not be read" for path in sorted(tried.changes.paths - shown.paths)]
    found: list[Counterexample] = []
    if functions:
        found, reasons = _attack(verifier, tried.changes, functions)
        left += reasons
    if functions and not found:
        try:
            inputs = _with_inputs(shop, place, tried, functions)
        except _NOBODY_ANSWERS as error:
            # What was verified stays so: the inputs of a model come on top of those that were tried.
            left, inputs = [*left, f"with inputs of the model: {error.message}"], []
        found, _ = _attack(verifier, tried.changes, inputs)
    told = (f"chaos: not attacked: {'; '.join(left)}",) if left else ()
    if not found:
        return replace(tried, notes=(*tried.notes, *told))
    number = _kept(shop, found)
    offered = f"chaos: a failing test is kept as entry {number}: pawl diff {number}, pawl promote {number}"
    words = tuple(one.text for one in found)
    attempt = replace(tried.attempt, end=AttemptEnd.REFUSED, refused=words, messages=words)
    return replace(tried, attempt=attempt, notes=(*tried.notes, *told, offered))


def _changed(shop: Project, changes: ChangeSet) -> Iterator[dict[str, Any]]:
    """The functions and methods whose text is another one now, with the file as it was."""
    for change in changes:
        if not change.path.endswith(".py") or is_test(change.path):
            continue
        before, after = (_source(shop, node) for node in (change.before, change.after))
        known = callables(before)
        for name, text in callables(after).items():
            if name in known and known[name] != text:
                yield {**described(change.path, name), "before": before}


def _foreign(changes: ChangeSet) -> list[str]:
    """The sources of other languages."""
    paths = sorted(change.path for change in changes if not change.path.endswith(".py") and not is_test(change.path))
    return [f"{path}: only Python is" for path in paths if language_of(path) is not None]


def _attack(
    verifier: Verifier, changes: ChangeSet, functions: list[dict[str, Any]]
) -> tuple[list[Counterexample], list[str]]:
    """Inputs that break the change, and targets that could not be attacked, with the reason."""
    if not functions:
        return [], []
    said = answered(verifier, changes, functions)
    if not said:
        return [], [f"{one['name']}: the script could not be run" for one in functions]
    return [Counterexample(**row) for row in said["found"]], list(said["left"])


def _with_inputs(
    shop: Project, place: Workplace, tried: Tried, functions: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The functions with the inputs that the chaos role thinks of."""
    diff = shown_diff(shop, tried.changes, MOST_DIFF)
    text = f"The change, which passes the tests:\n{diff}"
    line = TurnInput(talk=place.talk("chaos"), role=RoleName.CHAOS, text=text, stage=Stage.STUDY)
    value: contract_models.Cases = place.talker.say(line).value  # type: ignore[assignment]
    made = []
    for one in functions:
        inputs = [given for case in value.cases if (given := _arguments(case.input, one)) is not None]
        if inputs:
            made.append({**one, "inputs": inputs})
    return made


def _arguments(expression: str, one: Mapping[str, Any]) -> tuple[str, str] | None:
    """The literals of the constructor and of the call; None where the expression is anything else than such a call."""
    try:
        call = read_python(expression.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or call.keywords:
            return None
        holder = call.func.value if isinstance(call.func, ast.Attribute) else None
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
        made = holder.args if isinstance(holder, ast.Call) and not holder.keywords else []
        owner = ast.unparse(holder.func if isinstance(holder, ast.Call) else holder) if holder is not None else ""
        if name != one["name"] or (one["owner"] and owner.rpartition(".")[2] != one["owner"]):
            return None
        return _literals(made), _literals(call.args)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None


def _literals(nodes: Sequence[ast.expr]) -> str:
    return repr(tuple(ast.literal_eval(node) for node in nodes))


def _kept(shop: Project, found: list[Counterexample]) -> int:
    """The failing test as an entry that the user may promote."""
    lines = ['"""Inputs that broke a change which passed the tests."""', ""]
    lines += sorted({f"from {one.module} import {one.root}" for one in found})
    for number, one in enumerate(found, 1):
        lines += ["", "", f"def test_{one.name}_withstands_{number}():", f"    {one.call}"]
    path = f"tests/test_chaos_{found[0].name}.py" if shop.tree.look("tests") else f"test_chaos_{found[0].name}.py"
    blob = shop.store.blobs.put(("\n".join(lines) + "\n").encode())
    changes = ChangeSet.of([Change(path, None, Node.file(blob, 0o644))])
    return shop.keep(shop.new_entry(EntryKind.EDIT, f"chaos: a failing test for {found[0].name}"), changes)


def _source(shop: Project, node: Node | None) -> str:
    return "" if node is None or node.blob is None else shop.store.blobs.get(node.blob).decode("utf-8", "replace")
