"""Single mutations of a module, as replacements in its text: layout and comments stay."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

OFF_BY_ONE = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
UNCHANGED = ("annotation", "decorator_list")
NOT_RUN = ("TYPE_CHECKING", "sys.platform == 'win32'")
IMMATERIAL = re.compile(r"_?logger\.debug|.*\.iter_chunked|_?([A-Z]+_)*CHUNK")
"""Functions and constants whose arguments or values decide nothing; see the module."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Mutant:
    """A module with one change."""

    path: str
    """The file that a person would change, from the top of the repository."""

    line: int
    kind: str
    begin: int
    end: int
    """The replaced part of the text, as offsets."""

    replacement: str
    reached_by: frozenset[int] | None
    """Lines that run if the change does; `None` if it runs when the module is imported."""

    def apply(self, text: str) -> str:
        """The text of the module with the change."""
        return text[: self.begin] + self.replacement + text[self.end :]

    def describe(self, text: str) -> str:
        """Where the change is, its kind, and both texts."""
        old, new = (
            " ".join(part.split()) for part in (text[self.begin : self.end], self.replacement)
        )
        return f"{self.path}:{self.line}: {self.kind}: {old} -> {new}"


def mutants_of(path: str, text: str) -> list[Mutant]:
    """Every mutant of a module, in the order of the text."""
    return sorted(_Mutator(path, text).mutants(), key=lambda mutant: (mutant.begin, mutant.end))


class _Mutator:
    """Walks over the statements of one module; all text is ASCII, so columns are offsets."""

    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._text = text
        lines = text.splitlines(keepends=True)
        self._offsets = [sum(map(len, lines[:number])) for number in range(len(lines))]

    def mutants(self) -> Iterator[Mutant]:
        yield from self._block(ast.parse(self._text).body, None)

    def _block(self, body: list[ast.stmt], function: Function | None) -> Iterator[Mutant]:
        """The mutants of statements, which run when the module is imported or in a function."""
        for statement in body:
            match statement:
                case ast.If(test=test) if ast.unparse(test) in NOT_RUN:
                    yield from self._block(statement.orelse, function)
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    if "overload" not in map(ast.unparse, statement.decorator_list):
                        lines = frozenset().union(*map(lines_of, statement.body))
                        arguments = statement.args
                        for default in (*arguments.defaults, *filter(None, arguments.kw_defaults)):
                            yield from self._expressions(default, lines)
                        yield from self._block(statement.body, statement)
                case _:
                    yield from self._statement(statement, function)

    def _statement(self, statement: ast.stmt, function: Function | None) -> Iterator[Mutant]:
        """The mutants of one statement and of the blocks in it."""
        if is_immaterial(statement):
            return
        lines = header_lines(statement) if function is not None else None
        last = function is not None and statement is function.body[-1]
        if droppable(statement) and not (last and isinstance(statement, ast.Return)):
            yield self._replace(statement, "dropped statement", "pass", lines)
        for name, value in ast.iter_fields(statement):
            if name in UNCHANGED:
                continue
            for child in value if isinstance(value, list) else [value]:
                match child:
                    case ast.stmt():
                        yield from self._block([child], function)
                    case ast.ExceptHandler() | ast.match_case():
                        yield from self._block(child.body, function)
                        guard = getattr(child, "guard", None)
                        if guard is not None:
                            yield from self._condition(guard, lines_of(guard))
                    case ast.expr() if name == "test":
                        yield from self._condition(child, lines)
                    case ast.expr() | ast.withitem():
                        yield from self._expressions(child, lines)

    def _condition(self, test: ast.expr, lines: frozenset[int] | None) -> Iterator[Mutant]:
        """A condition negated, and the mutants in it."""
        yield self._replace(test, "negated condition", f"not ({self._source(test)})", lines)
        yield from self._expressions(test, lines)

    def _expressions(self, top: ast.AST, lines: frozenset[int] | None) -> Iterator[Mutant]:
        """The mutants of expressions, those in lambdas and comprehensions among them."""
        for node in walk(top):
            match node:
                case ast.Compare(ops=[operator], left=left, comparators=[right]) if (
                    type(operator) in OFF_BY_ONE
                ):
                    sign = OFF_BY_ONE[type(operator)]
                    text = f"{self._source(left)} {sign} {self._source(right)}"
                    yield self._replace(node, "off by one", text, lines)
                case ast.BoolOp(op=operator, values=values):
                    word = " or " if isinstance(operator, ast.And) else " and "
                    text = word.join(f"({self._source(value)})" for value in values)
                    yield self._replace(node, "and/or", f"({text})", lines)
                case ast.Constant(value=bool() as flag):
                    yield self._replace(node, "constant", f"{not flag}", lines)
                case ast.Constant(value=int() | float() as number):
                    yield self._replace(node, "constant", f"{number + 1}", lines)
                case ast.Await(value=value):
                    yield self._replace(node, "lost await", self._source(value), lines)
                case ast.IfExp(test=test):
                    text = f"not ({self._source(test)})"
                    yield self._replace(test, "negated condition", text, lines)
                case ast.comprehension(ifs=[test, *_]):
                    text = f"(not ({self._source(test)}))"
                    yield self._replace(test, "negated condition", text, lines)

    def _replace(
        self, node: ast.expr | ast.stmt, kind: str, replacement: str, lines: frozenset[int] | None
    ) -> Mutant:
        begin, end = self._span(node)
        return Mutant(self._path, node.lineno, kind, begin, end, replacement, lines)

    def _source(self, node: ast.expr) -> str:
        begin, end = self._span(node)
        return self._text[begin:end]

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        begin = self._offsets[node.lineno - 1] + node.col_offset
        return begin, self._offsets[node.end_lineno - 1] + node.end_col_offset


def walk(top: ast.AST) -> Iterator[ast.AST]:
    """A node and those below it, but not in f-strings: Python 3.11 misplaces their nodes."""
    yield top
    if not isinstance(top, ast.JoinedStr) and not is_immaterial(top):
        for child in ast.iter_child_nodes(top):
            yield from walk(child)


def is_immaterial(node: ast.AST) -> bool:
    """Whether a statement, or the arguments of a call, decide nothing that may be tested."""
    match node:
        case ast.Expr(value=ast.Call(func=name)) | ast.Call(func=name):
            pass
        case ast.Assign(targets=[name]):
            pass
        case _:
            return False
    return IMMATERIAL.fullmatch(ast.unparse(name)) is not None


def droppable(statement: ast.stmt) -> bool:
    """Whether a statement can be missing without a name that is not defined."""
    match statement:
        case ast.Expr(value=ast.Constant() | ast.Yield() | ast.YieldFrom()):
            return False  # documentation, or what makes a generator of its function
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return True
        case ast.Expr() | ast.AugAssign() | ast.Raise() | ast.Return() | ast.Delete():
            return True
        case ast.Break() | ast.Continue():
            return True
    return False


def lines_of(node: ast.expr | ast.stmt) -> frozenset[int]:
    """The numbers of the lines of a node."""
    return frozenset(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def header_lines(statement: ast.stmt) -> frozenset[int]:
    """The lines of a statement, without those of the blocks in it."""
    blocks = [
        child
        for child in ast.walk(statement)
        if isinstance(child, ast.stmt) and child is not statement
    ]
    return lines_of(statement) - frozenset().union(*map(lines_of, blocks))
