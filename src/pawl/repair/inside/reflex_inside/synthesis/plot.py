"""One statement with the states in which it ran: what grows there, and what its expressions are worth."""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from reflex_inside.edits import parent_of
from reflex_inside.limits import Caught
from reflex_inside.program import COMPREHENSIONS, Facts
from reflex_inside.synthesis.grow import Garden
from reflex_inside.synthesis.record import FAILURE, State

HOLE = "_hole_"
COMMON = ("0", "1", "2", "-1", "3", "10", "None", "True", "False", "''", "[]")
UNSEEN_SIZE = 1.6
"""How large a constant counts that the function does not mention."""
INNER_STATES = 40
PURE_CALLS = frozenset(
    {"len", "abs", "sorted", "set", "list", "tuple", "sum", "min", "max", "int", "str", "float", "bool", "round",
     "any", "all", "ord", "chr", "range", "enumerate", "zip", "reversed", "dict", "isinstance", "repr", "bin", "hex",
     "divmod", "frozenset", "map", "filter"}
)  # fmt: skip
PURE_METHODS = frozenset(
    {"lower", "upper", "strip", "lstrip", "rstrip", "split", "join", "startswith", "endswith", "isdigit", "isalpha",
     "isupper", "islower", "isalnum", "isspace", "count", "index", "find", "rfind", "replace", "keys", "values",
     "items", "get", "swapcase", "title", "capitalize", "zfill", "issubset", "issuperset", "union", "intersection",
     "difference", "copy", "format", "is_integer"}
)  # fmt: skip
IMPURE_NODES = (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr, ast.Starred, ast.Lambda)


def is_pure(node: ast.AST) -> bool:
    """Whether evaluating the expression on a copy of the variables harms nothing."""
    for inner in ast.walk(node):
        if isinstance(inner, IMPURE_NODES):
            return False
        if isinstance(inner, ast.Call):
            function = inner.func
            named = isinstance(function, ast.Name) and function.id in PURE_CALLS
            method = isinstance(function, ast.Attribute) and function.attr in PURE_METHODS
            if not named and not method:
                return False
    return True


def pure_roots(statement: ast.stmt) -> Iterator[ast.expr]:
    """The largest pure expressions of a statement that belong to no inner statement."""
    pending = [child for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load) and is_pure(node):
            yield node
        elif not isinstance(node, (ast.Lambda, ast.excepthandler)):
            pending.extend(child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt))


class Plot:
    """Evaluates expressions in the recorded states."""

    def __init__(self, facts: Facts, states: list[State], seconds: float) -> None:
        self.facts = facts
        self.states = states
        self.globals = facts.function.namespace
        self.seconds = seconds
        self.scopes = [dict(state.names) for state in states]

    def evaluate(self, code: CodeType, scopes: list[dict[str, Any]]) -> list[Any]:
        values: list[Any] = []
        for scope in scopes:
            value: Any = FAILURE
            with Caught():
                value = eval(code, self.globals, scope)
            values.append(value)
        return values

    def values_of(self, node: ast.expr, scopes: list[dict[str, Any]] | None = None) -> list[Any]:
        return self.evaluate(compiled(node), self.scopes if scopes is None else scopes)

    def garden(self, scopes: list[dict[str, Any]], names: list[str], largest: int) -> Garden:
        """Everything that grows from the names and constants at hand."""
        garden = Garden(len(scopes), self.seconds)
        for name in names:
            owner, _, attribute = name.partition(".")
            if attribute:
                values = [getattr(scope.get(owner, FAILURE), attribute, FAILURE) for scope in scopes]
            else:
                values = [scope.get(name, FAILURE) for scope in scopes]
            garden.plant(name, 1, values)
        self._plant_constants(garden, len(scopes))
        self._plant_attributes(garden, scopes, names)
        self._plant_calls(garden, scopes, names)
        for text, node in self.facts.ingredients.items():
            if not isinstance(node, ast.Name) and is_pure(node) and len(text) < 40:
                garden.plant(text, 2 + 0.05 * len(text), self.values_of(node, scopes), 9)
        garden.grow(largest)
        return garden

    def _plant_constants(self, garden: Garden, count: int) -> None:
        for number in self.facts.integers:
            if abs(number) < 10**6:
                garden.plant(str(number), 1, [number] * count, 0 if number >= 0 else 2)
        for text in self.facts.texts[:8]:
            garden.plant(repr(text), 1, [text] * count)
        for text in COMMON:
            garden.plant(text, UNSEEN_SIZE, [ast.literal_eval(text)] * count, 2 if text.startswith("-") else 0)

    def _plant_attributes(self, garden: Garden, scopes: list[dict[str, Any]], names: list[str]) -> None:
        for name in names:
            for attribute in self.facts.attributes.get(name, ())[:20]:
                if attribute in self.facts.module_attributes:
                    values = [getattr(scope.get(name), attribute, FAILURE) for scope in scopes]
                    if not any(callable(value) for value in values):
                        garden.plant(f"{name}.{attribute}", 2, values)

    def _plant_calls(self, garden: Garden, scopes: list[dict[str, Any]], names: list[str]) -> None:
        """Calls of the module's own small functions with one variable each."""
        for callee, count in self.facts.callees.items():
            function: Any = (scopes[0].get(callee) or self.globals.get(callee)) if scopes else None
            own = isinstance(function, FunctionType) and function is not self.facts.function.main
            if own and count == 1 and not hasattr(builtins, callee):
                for name in [each for each in names if "." not in each]:
                    values = [scope.get(name, FAILURE) for scope in scopes]
                    garden.plant(f"{callee}({name})", 2, garden.apply(copied_call(function), values))

    def inner_scopes(self, node: ast.AST) -> list[dict[str, Any]] | None:
        """The states inside the comprehensions around a node; None where there are none around it."""
        around = enclosing_comprehensions(node)
        if not around:
            return None
        scopes = self.scopes
        for comprehension in around:
            for generator in comprehension.generators:
                scopes = self._bound(generator, scopes)
        return scopes

    def _bound(self, generator: ast.comprehension, scopes: list[dict[str, Any]]) -> list[dict[str, Any]]:
        names = [name.id for name in ast.walk(generator.target) if isinstance(name, ast.Name)]
        element = ast.Tuple([ast.Name(name, ast.Load()) for name in names], ast.Load())
        plain = ast.comprehension(generator.target, generator.iter, [], 0)
        code = compiled(ast.ListComp(element, [plain]))
        inner: list[dict[str, Any]] = []
        for scope in scopes:
            found = self.evaluate(code, [scope])[0]
            for values in found if isinstance(found, list) else ():
                inner.append({**scope, **dict(zip(names, values, strict=True))})
                if len(inner) >= INNER_STATES:
                    return inner
        return inner


def copied_call(function: FunctionType) -> Any:
    return lambda value: function(copy.deepcopy(value))


def compiled(node: ast.expr) -> CodeType:
    tree = ast.Expression(copy_node(node))
    return compile(ast.fix_missing_locations(tree), "grown", "eval")


def copy_node(node: ast.expr) -> ast.expr:
    """A copy without the links to parents, which would drag the module along."""
    return ast.parse(f"({ast.unparse(node)})", mode="eval").body


def enclosing_comprehensions(node: ast.AST) -> list[Any]:
    """The comprehensions whose variables can be read at the node, outermost first."""
    found: list[Any] = []
    child, parent = node, parent_of(node)
    while not isinstance(parent, ast.stmt):
        if isinstance(parent, COMPREHENSIONS) and not isinstance(child, ast.comprehension):
            found.insert(0, parent)
        elif isinstance(parent, ast.comprehension) and child is not parent.iter:
            owner = parent_of(parent)
            if owner not in found:
                found.insert(0, owner)
        child, parent = parent, parent_of(parent)
    return found


def with_hole(root: ast.expr, node: ast.expr) -> CodeType:
    """The root's code with the node replaced by a name that can be bound to any value."""
    if root is node:
        return compile(HOLE, "hole", "eval")
    return compile(f"({replaced_text(root, node, HOLE)})", "hole", "eval")


def replaced_text(root: ast.expr, node: ast.expr, text: str) -> str:
    """The root's text with the node's replaced."""

    class Exchange(ast.NodeTransformer):
        def visit(self, inner: ast.AST) -> ast.AST:
            if inner is node:
                return ast.Name(f"({text})" if text != HOLE else HOLE, ast.Load())
            return self.generic_visit(inner)

    # The tree is shared: the transformer works on a shallow copy of the path from the root to the node.
    return ast.unparse(Exchange().visit(_path_copy(root, node)))


def _path_copy(root: ast.AST, node: ast.AST) -> Any:
    if root is node:
        return root
    fresh = copy.copy(root)
    for field, value in ast.iter_fields(root):
        if isinstance(value, list):
            setattr(fresh, field, [_path_copy(each, node) if isinstance(each, ast.AST) else each for each in value])
        elif isinstance(value, ast.AST):
            setattr(fresh, field, _path_copy(value, node))
    return fresh
