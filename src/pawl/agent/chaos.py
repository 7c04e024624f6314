"""Chaos: what was verified is attacked with inputs nobody wrote down before it counts (E2).

Without a model first: the calls of the tests, changed a little, go to the code before and after. What gave a value and
now crashes refuses the attempt. Then the chaos role names inputs, which go the same way; what it expects is words.
A counterexample becomes a failing test, kept as an entry.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pawl.agent.context import TurnInput
from pawl.agent.judging import Tried
from pawl.agent.test_generation import answered, callables, described, is_test
from pawl.agent.workplace import Workplace, form_of
from pawl.checks.verifier import Verifier
from pawl.code.languages import language_of
from pawl.core.change import Change, ChangeSet, Node
from pawl.core.errors import AnswerUnusable, BudgetExceeded, RequestRejected, SchemaUnmet
from pawl.core.formats import read_python
from pawl.core.history import EntryKind
from pawl.core.patch import unified
from pawl.core.run import RoleName, Stage
from pawl.core.tiers import AttemptEnd
from pawl.workspace.project import Project

if TYPE_CHECKING:
    from pawl.agent import contract_models


MOST_DIFF = 12_000
_NOBODY_ANSWERS = (AnswerUnusable, BudgetExceeded, RequestRejected, SchemaUnmet)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """A call that crashes now and did not before."""

    module: str
    root: str
    """What is imported for it: the function, or the class."""
    name: str
    call: str
    error: str

    @property
    def text(self) -> str:
        return f"chaos: {self.call} gave a value before and now: {self.error}"


def attacked(shop: Project, verifier: Verifier, place: Workplace, tried: Tried) -> Tried:
    """The attempt as it was, or refused with what broke it; what could not be attacked is told."""
    if tried.attempt.end is not AttemptEnd.VERIFIED:
        return tried
    functions = list(_changed(shop, tried.changes))
    left = _foreign(tried.changes)
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
    """What breaks the change, and what could not be attacked, with the reason."""
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
    diff = unified(shop.read_gate().shown(tried.changes), shop.store.blobs)[:MOST_DIFF]
    text = "\n\n".join(
        (f"The change, which passes the tests:\n{diff}", form_of(RoleName.CHAOS, place.talker.terms.reasoning))
    )
    line = TurnInput(talk=place.talk("chaos"), role=RoleName.CHAOS, text=text, stage=Stage.STUDY)
    value: contract_models.Cases = place.talker.say(line).value  # type: ignore[assignment]
    cases = value.cases if value is not None else ()
    made = []
    for one in functions:
        inputs = [given for case in cases if (given := _arguments(case.input, one)) is not None]
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
