"""Chaos: what was verified is attacked with inputs nobody wrote down before it counts (E2).

Without a model first: the calls of the tests, changed a little, go to the code before and after. What gave a value and
now crashes refuses the attempt. Then the chaos role names inputs, which go the same way; what it expects is words.
A counterexample becomes a failing test, kept as an entry.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import resources
from typing import TYPE_CHECKING, Any

from pawl.app.doing.climbing.judging import Tried
from pawl.app.doing.climbing.workplace import Workplace, form_of
from pawl.app.doing.verifying import Verifier
from pawl.app.workshop import Workshop
from pawl.core.change import Change, ChangeSet, Node
from pawl.core.errors import SchemaUnmet
from pawl.core.history import EntryKind
from pawl.core.patch import unified
from pawl.core.run import RoleName, Stage
from pawl.core.tiers import AttemptEnd
from pawl.workflow.climbing.rewriting import functions_of, text_of
from pawl.workflow.climbing.test_files import is_test, module_of
from pawl.workflow.workbench import Line

if TYPE_CHECKING:
    from pawl.workflow import contract_models

SCRIPT, ORDER = "pawl_attack.py", "pawl_attack.json"
MOST_DIFF = 12_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """A call that crashes now and did not before."""

    module: str
    name: str
    input: str
    error: str

    @property
    def text(self) -> str:
        return f"chaos: {self.name}({self.input}) gave a value before and now: {self.error}"


def attacked(shop: Workshop, verifier: Verifier, place: Workplace, tried: Tried) -> Tried:
    """The attempt as it was, or refused with what broke it."""
    functions = list(_changed(shop, tried.changes))
    if not functions or tried.attempt.end is not AttemptEnd.VERIFIED:
        return tried
    found = _attack(verifier, tried.changes, functions)
    if not found:
        found = _attack(verifier, tried.changes, _with_inputs(shop, place, tried, functions))
    if not found:
        return tried
    number = _kept(shop, found)
    offered = f"chaos: a failing test is kept as entry {number}: pawl diff {number}, pawl promote {number}"
    words = tuple(one.text for one in found)
    attempt = replace(tried.attempt, end=AttemptEnd.REFUSED, refused=words, messages=words)
    return replace(tried, attempt=attempt, notes=(*tried.notes, offered))


def _changed(shop: Workshop, changes: ChangeSet) -> Iterator[dict[str, Any]]:
    """The plain functions whose text is another one now, with the file as it was."""
    for change in changes:
        if not change.path.endswith(".py") or is_test(change.path):
            continue
        before, after = (_source(shop, node) for node in (change.before, change.after))
        known = {one.name: text_of(one, before) for one in functions_of(change.path, before) if not one.indent}
        for one in functions_of(change.path, after):
            if one.name in known and not one.indent and known[one.name] != text_of(one, after):
                yield {"path": change.path, "module": module_of(change.path), "name": one.name, "before": before}


def _attack(verifier: Verifier, changes: ChangeSet, functions: list[dict[str, Any]]) -> list[Counterexample]:
    script = (resources.files("pawl.app.doing.climbing") / "inside" / "attack.py").read_bytes()
    tests = [word for word in verifier.test_command if word.endswith(".py") or "::" in word]
    order = json.dumps({"functions": functions, "tests": tests}).encode()
    completed = verifier.run_python(changes, (SCRIPT, ORDER), {SCRIPT: script, ORDER: order})
    if completed is None or not completed.ok:
        return []
    try:
        rows = json.loads(completed.stdout.text.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return []
    return [Counterexample(**row) for row in rows]


def _with_inputs(
    shop: Workshop, place: Workplace, tried: Tried, functions: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The functions with the inputs that the chaos role thinks of."""
    diff = unified(tried.changes, shop.store.blobs)[:MOST_DIFF]
    text = "\n\n".join(
        (f"The change, which passes the tests:\n{diff}", form_of(RoleName.CHAOS, place.talker.terms.reasoning))
    )
    line = Line(talk=place.talk("chaos"), role=RoleName.CHAOS, text=text, stage=Stage.STUDY)
    try:
        value: contract_models.Cases = place.talker.say(line).value  # type: ignore[assignment]
    except SchemaUnmet:
        return []
    cases = value.cases if value is not None else ()
    made = []
    for one in functions:
        inputs = [words for case in cases if (words := _arguments(case.input, one["name"]))]
        if inputs:
            made.append({**one, "inputs": inputs})
    return made


def _arguments(expression: str, name: str) -> str:
    """The arguments of a call of that function as literals; empty where it is anything else."""
    try:
        call = ast.parse(expression.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or call.keywords or ast.unparse(call.func).rpartition(".")[2] != name:
            return ""
        return ", ".join(repr(ast.literal_eval(argument)) for argument in call.args)
    except (SyntaxError, ValueError):
        return ""


def _kept(shop: Workshop, found: list[Counterexample]) -> int:
    """The failing test as an entry that the user may promote."""
    lines = ['"""Inputs that broke a change which passed the tests."""', ""]
    lines += sorted({f"from {one.module} import {one.name}" for one in found})
    for number, one in enumerate(found, 1):
        lines += ["", "", f"def test_{one.name}_withstands_{number}():", f"    {one.name}({one.input})"]
    path = f"tests/test_chaos_{found[0].name}.py" if shop.tree.look("tests") else f"test_chaos_{found[0].name}.py"
    blob = shop.store.blobs.put(("\n".join(lines) + "\n").encode())
    changes = ChangeSet.of([Change(path, None, Node.file(blob, 0o644))])
    return shop.keep(shop.new_entry(EntryKind.EDIT, f"chaos: a failing test for {found[0].name}"), changes)


def _source(shop: Workshop, node: Node | None) -> str:
    return "" if node is None or node.blob is None else shop.store.blobs.get(node.blob).decode("utf-8", "replace")
