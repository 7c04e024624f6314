"""What a failing assertion wanted a call to return, read from the frame in which it failed."""

from __future__ import annotations

import ast
import linecache
from types import FrameType
from typing import TYPE_CHECKING, Any

from reflex_inside.caught import Caught
from reflex_inside.program import Program

if TYPE_CHECKING:
    from reflex_inside.synthesis.record import Call

PURE = (
    ast.Constant, ast.Name, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.UnaryOp, ast.BinOp, ast.Attribute,
    ast.Subscript, ast.operator, ast.unaryop, ast.expr_context,
)  # fmt: skip
EQUALITIES = frozenset(
    {"assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertIs", "assertSetEqual"}
)


def wanted_values(program: Program, path: str, error: BaseException, calls: list[Call]) -> None:
    """Notes on the call that a failed assertion speaks of what it should have returned."""
    frame, line = _test_frame(error, path)
    if frame is None:
        return
    pair = _assertion(frame, path, line)
    if pair is None:
        return
    subject, wanted = pair
    own = [call for call in calls if call.by_test]
    if isinstance(subject, ast.Call):
        function = _called_function(program, subject, frame)
        own = [call for call in own if call.function == function]
    elif isinstance(subject, ast.Name):
        value = frame.f_locals.get(subject.id)
        own = [call for call in own if type(call.returned) is type(value) and call.returned == value]
    else:
        return
    if own:
        own[-1].wanted = wanted


def _test_frame(error: BaseException, path: str) -> tuple[FrameType | None, int]:
    trace, found, line = error.__traceback__, None, 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            found, line = trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next
    return found, line


def _assertion(frame: FrameType, path: str, line: int) -> tuple[ast.expr, Any] | None:
    """The expression that was judged, and the value it should have had."""
    tree = ast.parse("".join(linecache.getlines(path)))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assert, ast.Expr)) and node.lineno <= line <= (node.end_lineno or line):
            if isinstance(node, ast.Assert):
                return _judged(node.test, frame)
            if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
                return _method(node.value, frame)
    return None


def _judged(test: ast.expr, frame: FrameType) -> tuple[ast.expr, Any] | None:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand, False
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Eq, ast.Is)):
        return _sides(test.left, test.comparators[0], frame)
    return (test, True) if isinstance(test, (ast.Call, ast.Name)) else None


def _method(call: ast.Call, frame: FrameType) -> tuple[ast.expr, Any] | None:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if name in EQUALITIES and len(call.args) >= 2:
        return _sides(call.args[0], call.args[1], frame)
    if name in {"assertTrue", "assertFalse"} and call.args:
        return call.args[0], name == "assertTrue"
    return None


def _sides(left: ast.expr, right: ast.expr, frame: FrameType) -> tuple[ast.expr, Any] | None:
    for subject, other in ((left, right), (right, left)):
        if isinstance(subject, (ast.Call, ast.Name)) and all(isinstance(node, PURE) for node in ast.walk(other)):
            value: list[Any] = []
            with Caught():
                value.append(eval(compile(ast.Expression(other), "wanted", "eval"), frame.f_globals, frame.f_locals))
            if value:
                return subject, value[0]
    return None


def _called_function(program: Program, call: ast.Call, frame: FrameType) -> int:
    found: list[Any] = []
    with Caught():
        found.append(eval(compile(ast.Expression(call.func), "called", "eval"), frame.f_globals, frame.f_locals))
    thing: Any = getattr(found[0], "__func__", found[0]) if found else None
    while hasattr(thing, "__wrapped__"):
        thing = thing.__wrapped__
    code = getattr(thing, "__code__", None)
    for function in program.functions:
        if code is not None and (code.co_filename, code.co_firstlineno) == (function.path, function.first_line):
            return function.index
    return -1
