"""Small changes of a source file, one at a time: what a test suite should notice.

A mutant is named by its file, the function it is in, the kind of change and its number among the changes of that kind in that function, so
that edits elsewhere leave its name alone. Texts, annotations, assertions, `__repr__` and what a `raise` says are not changed.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
COMPUTED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult, ast.Mod: ast.Add,
    ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
OPPOSITE = {"min": "max", "minimum": "maximum", "all": "any", "floor": "ceil", "argmin": "argmax"}
OPPOSITE |= {new: old for old, new in OPPOSITE.items()}
LOGICAL = (ast.Compare, ast.BoolOp, ast.UnaryOp)  # has changes of its own, which say the same as a negation
SYMMETRIC = {"zip", "min", "max", "isinstance", "gcd", "lcm"}  # the order of arguments hardly matters, or shows at once
SILENT = {"log", "logging", "warnings"}
SKIPPED = ("__repr__", "__str__", "_jit", "_inner", "kernel")  # texts, and how functions are compiled


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    name: str
    module: str  # path of the file below the repository
    function: str  # qualified name; "" for code outside functions
    line: int
    change: str  # for people
    functions: frozenset[str]  # all that the file has; other code runs when it is imported


def mutants(root: Path, module: str, functions: set[str] | None = None) -> list[Mutant]:
    """Every mutant of a file, or of some of its functions."""
    tree = ast.parse((root / module).read_text(encoding="utf-8"))
    count: Counter[tuple[str, str]] = Counter()
    known = frozenset(_functions(tree.body, ""))
    found = []
    for function, kind, node, change, undo in _changes(tree):
        number = count[function, kind] = count[function, kind] + 1
        if functions is None or function.split(".")[0] in functions:
            before = ast.unparse(node)
            change()
            after = ast.unparse(node) if kind != "delete" else "pass"
            undo()
            text = _difference(before, after)
            name = f"{module}:{function or '(module)'}:{kind}:{number}"
            found.append(Mutant(name, module, function, getattr(node, "lineno", 0), text, known))
    return found


def source_of(root: Path, mutant: Mutant) -> str:
    """The whole file, changed."""
    tree = ast.parse((root / mutant.module).read_text(encoding="utf-8"))
    count: Counter[tuple[str, str]] = Counter()
    for function, kind, _, change, _ in _changes(tree):
        number = count[function, kind] = count[function, kind] + 1
        if f"{mutant.module}:{function or '(module)'}:{kind}:{number}" == mutant.name:
            change()
            return ast.unparse(ast.fix_missing_locations(tree))
    raise ValueError(f"{mutant.name}: the file was changed meanwhile")


def _difference(before: str, after: str) -> str:
    """Both in one line, cut down to where they differ."""
    one, two = " ".join(before.split()), " ".join(after.split())
    first = next((k for k, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), 0)
    begin = max(0, first - 30) if max(len(one), len(two)) > 70 else 0
    return f"{_cut(one, begin)} -> {_cut(two, begin)}"


def _cut(text: str, begin: int) -> str:
    return ("..." if begin else "") + text[begin : begin + 70] + ("..." if len(text) > begin + 70 else "")


Change = tuple[str, str, ast.AST, Callable[[], None], Callable[[], None]]


def _changes(tree: ast.Module) -> Iterator[Change]:
    """(function, kind, statement or expression to show, do, undo), in the order of the file."""
    yield from _in_body(tree.body, "", None)


def _in_body(body: list[ast.stmt], function: str, known: set[str] | None) -> Iterator[Change]:
    """`known` are the names assigned so far in a function; None outside of functions."""
    for k, statement in enumerate(body):
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            if statement.name in SKIPPED:
                continue
            inner = f"{function}.{statement.name}" if function else statement.name
            if isinstance(statement, ast.FunctionDef):
                arguments = {a.arg for a in (*statement.args.args, *statement.args.kwonlyargs)}
                for default in (*statement.args.defaults, *filter(None, statement.args.kw_defaults)):
                    yield from _in_expression(default, inner)
                yield from _in_body(statement.body, inner, arguments)
            else:
                yield from _in_body(statement.body, inner, None)
            continue
        yield from _statement(body, k, function, known)


def _statement(body: list[ast.stmt], k: int, function: str, known: set[str] | None) -> Iterator[Change]:
    statement = body[k]
    if isinstance(statement, (ast.Import, ast.ImportFrom, ast.Assert, ast.Pass, ast.Global, ast.Nonlocal)):
        return
    if isinstance(statement, ast.Expr) and (_is_text(statement.value) or _is_silent(statement.value)):
        return
    if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
        return
    if known is not None and _can_go(statement, known):
        yield _delete(body, k, function)
    if isinstance(statement, ast.Raise):
        return
    if known is not None and isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        known |= {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
    if isinstance(statement, ast.Return) and statement.value is not None and not _is_plain(statement.value):
        yield _swap_field(statement, "value", ast.Constant(None), function, "return", statement)
    if isinstance(statement, ast.AugAssign) and type(statement.op) in COMPUTED:
        yield _swap_field(statement, "op", COMPUTED[type(statement.op)](), function, "compute", statement)
    if isinstance(statement, (ast.If, ast.While)) and not isinstance(statement.test, LOGICAL):
        yield _swap_field(statement, "test", ast.UnaryOp(ast.Not(), statement.test), function, "not", statement)
    if known is None and any(isinstance(node, ast.BitOr) for node in ast.walk(statement)):
        return  # a name for a type
    if known is None and isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]).isupper():
        return  # a limit, which one more or less does not change
    for part in _own_expressions(statement):
        yield from _in_expression(part, function)
    for field in ("body", "orelse", "finalbody"):
        yield from _in_body(getattr(statement, field, []), function, known)
    for handler in getattr(statement, "handlers", []):
        yield from _in_body(handler.body, function, known)
    for case in getattr(statement, "cases", []):
        yield from _in_body(case.body, function, known)


def _own_expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of a statement, those of the statements inside it aside."""
    for field, value in ast.iter_fields(statement):
        if field in ("annotation", "decorator_list", "type_params"):
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, ast.expr):
                yield part
            elif isinstance(part, ast.withitem):
                yield part.context_expr


def _can_go(statement: ast.stmt, known: set[str]) -> bool:
    """Whether a statement can be left out without a name being unknown afterwards."""
    if isinstance(statement, (ast.Expr, ast.AugAssign, ast.Raise, ast.Continue, ast.Break)):
        return True
    if isinstance(statement, ast.Assign):
        names = {n.id for target in statement.targets for n in ast.walk(target) if _is_stored(n)}
        return names <= known
    return False


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)))


def _is_plain(node: ast.expr) -> bool:
    """None, True or False, which have changes of their own or none."""
    return isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool))


def _is_silent(node: ast.expr) -> bool:
    """Whether an expression only tells somebody something."""
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id in SILENT


# -- one change -------------------------------------------------------------------------------------------------------


def _delete(body: list[ast.stmt], k: int, function: str) -> Change:
    statement = body[k]
    nothing = ast.copy_location(ast.Pass(), statement)

    def do() -> None:
        body[k] = nothing

    def undo() -> None:
        body[k] = statement

    return function, "delete", statement, do, undo


def _swap_field(node: ast.AST, field: str, new: object, function: str, kind: str, shown: ast.AST) -> Change:
    old = getattr(node, field)

    def do() -> None:
        setattr(node, field, new)

    def undo() -> None:
        setattr(node, field, old)

    return function, kind, shown, do, undo


def _in_expression(root: ast.expr, function: str) -> Iterator[Change]:
    """Changes of an expression and what is inside it."""
    for node in _walk(root):
        for field, new, kind in _alternatives(node):
            yield _swap_field(node, field, new, function, kind, node)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """What is inside an expression, texts and what is only told to somebody aside."""
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Call) and _is_silent(node)):
        return
    if isinstance(node, ast.IfExp) and (_is_text(node.body) or _is_text(node.orelse)):
        return
    if isinstance(node, ast.keyword) and node.arg == "strict":  # a guard, as an assertion is
        return
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(node, ast.Call) and _makes_error(node):
            return
        yield from _walk(child)


def _makes_error(node: ast.Call) -> bool:
    name = ast.unparse(node.func).rpartition(".")[2]
    return name.endswith(("Error", "Infeasible", "TooLarge", "BadFile", "UnknownPair", "InvalidOption", "InvalidGame"))


def _alternatives(node: ast.AST) -> Iterator[tuple[str, object, str]]:
    """(field, what it becomes, kind of change)"""
    if isinstance(node, ast.Compare):
        for k, op in enumerate(node.ops):
            if type(op) in COMPARED:
                yield "ops", [*node.ops[:k], COMPARED[type(op)](), *node.ops[k + 1 :]], "compare"
    elif isinstance(node, ast.BinOp):
        if type(node.op) in COMPUTED and not any(map(_is_text, (node.left, node.right))):
            yield "op", COMPUTED[type(node.op)](), "compute"
    elif isinstance(node, ast.BoolOp):
        yield "op", ast.Or() if isinstance(node.op, ast.And) else ast.And(), "logic"
        for k in range(len(node.values)):
            yield "values", [*node.values[:k], *node.values[k + 1 :]], "drop"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "operand", ast.UnaryOp(ast.Not(), node.operand), "not"
    elif isinstance(node, ast.IfExp) and not isinstance(node.test, LOGICAL):
        yield "test", ast.UnaryOp(ast.Not(), node.test), "not"
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield "value", not node.value, "constant"
        elif isinstance(node.value, (int, float)):
            yield "value", type(node.value)({0: 1, 1: 0}.get(node.value, node.value + 1)), "constant"
    elif isinstance(node, ast.Slice):
        for field in ("lower", "upper"):
            bound = getattr(node, field)
            if bound is not None and not isinstance(bound, ast.Constant):
                yield field, ast.BinOp(bound, ast.Add(), ast.Constant(1)), "slice"
    elif isinstance(node, ast.Name) and node.id in OPPOSITE:
        yield "id", OPPOSITE[node.id], "opposite"
    elif isinstance(node, ast.Attribute) and node.attr in OPPOSITE:
        yield "attr", OPPOSITE[node.attr], "opposite"
    elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] not in SYMMETRIC:
        for k in range(len(node.args) - 1):
            if isinstance(node.args[k], ast.Name) and isinstance(node.args[k + 1], ast.Name):
                args = [*node.args[:k], node.args[k + 1], node.args[k], *node.args[k + 2 :]]
                yield "args", args, "swap"
    elif isinstance(node, ast.comprehension) and node.ifs:
        yield "ifs", node.ifs[1:], "drop"


def _functions(body: list[ast.stmt], inside: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            name = f"{inside}.{node.name}" if inside else node.name
            if isinstance(node, ast.FunctionDef):
                yield name
            yield from _functions(node.body, name)


def telling(source: str, module: str) -> str:
    """The same code, but every function says that it is called: `sys.modules["mutants_called"].called(name)`."""
    tree = ast.parse(source)

    def tell(body: list[ast.stmt], inside: str) -> None:
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                name = f"{inside}.{node.name}" if inside else node.name
                tell(node.body, name)
                if isinstance(node, ast.FunctionDef):
                    word = f"__import__('sys').modules['mutants_called'].called({f'{module}:{name}'!r})"
                    node.body[1 if ast.get_docstring(node) is not None else 0 : 0] = ast.parse(word).body
            else:
                for field in ("body", "orelse", "finalbody"):
                    tell(getattr(node, field, []), inside)

    tell(tree.body, "")
    return ast.unparse(tree)


if __name__ == "__main__":
    raise SystemExit("a module, used by mutate.py: python reliability/mutate.py --help")
