"""What is known of one function: names in scope, observed types, and the pieces of code that could be used again."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from reflex_inside.edits import Source, parent_of
from reflex_inside.program import Function

NUMBERS = frozenset({"int", "float", "bool", "Fraction", "Decimal", "complex"})
SEQUENCES = frozenset({"list", "str", "tuple", "bytes"})
SIZED = frozenset({"list", "str", "tuple", "dict", "set", "deque", "bytes", "frozenset", "Counter", "defaultdict"})
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
SIMPLE_STATEMENTS = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.Raise)
LONGEST_INGREDIENT = 60
RESULT_TYPES = {
    "len": "int", "sum": "int", "int": "int", "str": "str", "list": "list", "sorted": "list", "set": "set",
    "abs": "int", "ord": "int", "round": "int", "chr": "str", "float": "float", "bool": "bool", "tuple": "tuple",
    "dict": "dict", "repr": "str",
}  # fmt: skip


@dataclass(slots=True)
class Facts:
    source: Source
    function: Function
    types: dict[str, frozenset[str]] = field(default_factory=dict)
    attributes: dict[str, list[str]] = field(default_factory=dict)
    strings: list[str] = field(default_factory=list)
    """Strings that the failing tests mention."""
    others: list[Source] = field(default_factory=list)
    """The other files of the program."""
    names: list[str] = field(default_factory=list)
    inner_names: frozenset[str] = frozenset()
    """Names that only comprehensions bind."""
    callees: dict[str, int] = field(default_factory=dict)
    module_attributes: list[str] = field(default_factory=list)
    integers: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    ingredients: dict[str, ast.expr] = field(default_factory=dict)
    conditions: list[str] = field(default_factory=list)
    statements: list[ast.stmt] = field(default_factory=list)

    def type_of(self, name: str) -> frozenset[str]:
        return self.types.get(name, frozenset())

    def guess(self, node: ast.expr) -> frozenset[str]:
        """The types an expression seems to have; empty when nothing is known."""
        match node:
            case ast.Name():
                return self.type_of(node.id)
            case ast.Constant():
                return frozenset({type(node.value).__name__})
            case ast.Compare():
                return frozenset({"bool"})
            case ast.List() | ast.ListComp():
                return frozenset({"list"})
            case ast.Call(func=ast.Name(id=name)) if name in RESULT_TYPES:
                return frozenset({RESULT_TYPES[name]})
            case ast.Attribute(value=ast.Name(id=owner)):
                return self.type_of(f"{owner}.{node.attr}")
            case ast.BinOp():
                left, right = self.guess(node.left), self.guess(node.right)
                return (left & right) or (left if left <= NUMBERS and right <= NUMBERS else frozenset())
            case ast.Subscript(slice=ast.Slice()):
                return self.guess(node.value)
        return frozenset()

    def numeric(self, node: ast.expr) -> bool:
        """Whether the expression may be a number."""
        types = self.guess(node)
        return not types or bool(types & NUMBERS)

    def distance(self, first: str, second: str) -> float:
        """How unlikely it is that one name stands where the other should."""
        one, other = self.type_of(first), self.type_of(second)
        if not one or not other:
            return 0.7
        if one & other:
            return 0.0
        return 0.6 if one | other <= NUMBERS or one | other <= SEQUENCES else 2.5

    def scope(self, node: ast.AST) -> list[str]:
        """The variables that can be read at the node."""
        names = [name for name in self.names if name not in self.inner_names]
        while node is not self.function.node and hasattr(node, "parent"):
            node = parent_of(node)
            if isinstance(node, COMPREHENSIONS):
                for generator in node.generators:
                    names += [n.id for n in ast.walk(generator.target) if isinstance(n, ast.Name)]
        return list(dict.fromkeys(names))

    def outer_scope(self) -> list[str]:
        return [name for name in self.names if name not in self.inner_names]


def gather_facts(facts: Facts) -> Facts:
    """Fills in what the text of the function and its module says."""
    node, tree = facts.function.node, facts.source.tree
    facts.names = _bound_names(node) + _own_attributes(facts)
    facts.inner_names = frozenset(
        name.id
        for inner in ast.walk(node)
        if isinstance(inner, ast.comprehension)
        for name in ast.walk(inner.target)
        if isinstance(name, ast.Name)
    )
    facts.callees = {
        call.func.id: len(call.args)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    }
    facts.module_attributes = sorted({each.attr for each in ast.walk(tree) if isinstance(each, ast.Attribute)})
    constants = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
    document = ast.get_docstring(node, clean=False)
    facts.integers = sorted({value for value in constants if type(value) is int})
    facts.texts = sorted({v for v in constants if isinstance(v, str) and len(v) < 60 and v != document})
    facts.strings = [text for text in facts.strings if text not in facts.texts][:40]
    _gather_pieces(facts)
    return facts


def _bound_names(node: ast.AST) -> list[str]:
    names: dict[str, None] = {}
    for inner in ast.walk(node):
        match inner:
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.ExceptHandler(name=str(name)):
                names[name] = None
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                if inner is not node:
                    names[name] = None
    return list(names)


def _own_attributes(facts: Facts) -> list[str]:
    """`self.x` for the attributes of data that the class is seen to use."""
    if not facts.function.owners or not facts.function.node.args.args:
        return []
    own = facts.function.node.args.args[0].arg
    used = {
        f"{own}.{each.attr}"
        for each in ast.walk(facts.source.tree)
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id == own
    }
    return sorted(name for name in used if name in facts.types)[:10]


def _gather_pieces(facts: Facts) -> None:
    conditions: dict[str, None] = {}
    statements: dict[str, ast.stmt] = {}
    for node in ast.walk(facts.function.node):
        if isinstance(node, (ast.If, ast.While, ast.IfExp)):
            conditions[ast.unparse(node.test)] = None
        if isinstance(node, ast.Compare):
            conditions[ast.unparse(node)] = None
        if isinstance(node, ast.expr) and _reusable(node):
            text = ast.unparse(node)
            if len(text) < LONGEST_INGREDIENT:
                facts.ingredients.setdefault(text, node)
        if isinstance(node, SIMPLE_STATEMENTS) and not is_document(node) and (node.end_lineno or 0) - node.lineno < 3:
            statements.setdefault(ast.unparse(node), node)
    facts.conditions = list(conditions)
    facts.statements = list(statements.values())[:25]


def _reusable(node: ast.expr) -> bool:
    if isinstance(node, (ast.Constant, ast.Starred, ast.JoinedStr, ast.FormattedValue, ast.Slice)):
        return False
    return not isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))


def is_document(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
