"""The parts of a module that rules are about, and their places in its text.

Places are offsets in the UTF-8 bytes of the text, as `ast` counts columns.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Definition: TypeAlias = Function | ast.ClassDef
Named: TypeAlias = Definition | ast.AnnAssign | ast.Assign


@dataclass(frozen=True)
class Item:
    """A statement of a module or class.

    Attributes:
        node: The statement.
        name: The name that it defines; empty for other statements.
        docstring: The text that documents it, as it stands in the tree.
    """

    node: ast.stmt
    name: str
    docstring: ast.Constant | None


def parsed(text: str) -> ast.Module:
    """The tree of a module.

    Raises:
        SyntaxError: The text is no Python, or nested too deeply to be read.
    """
    try:
        return ast.parse(text)
    except SyntaxError:
        raise
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError(str(error) or type(error).__name__) from None


def expression(text: str) -> ast.expr:
    """The tree of an expression.

    Raises:
        SyntaxError: The text is none.
    """
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        raise
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError(str(error) or type(error).__name__) from None


def docstring_of(node: ast.Module | Definition) -> ast.Constant | None:
    """The docstring of a module, class or function."""
    return _string(node.body[0]) if node.body else None


def _string(node: ast.stmt) -> ast.Constant | None:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return node.value if isinstance(node.value.value, str) else None
    return None


def text_of(docstring: ast.Constant | None) -> str | None:
    """The text of a docstring without its indentation; `None` if there is none."""
    if docstring is None:
        return None
    assert isinstance(docstring.value, str)  # or it would be none
    return inspect.cleandoc(docstring.value)


def items(node: ast.Module | ast.ClassDef) -> list[Item]:
    """The statements of a module or class, without docstrings."""
    found: list[Item] = []
    body = node.body[1:] if docstring_of(node) else node.body
    previous: ast.stmt | None = None
    for each in body:
        string = _string(each)
        if string is not None and isinstance(previous, ast.AnnAssign | ast.Assign):
            found[-1] = Item(previous, found[-1].name, string)
            previous = None
            continue
        docstring = docstring_of(each) if isinstance(each, Definition) else None
        found.append(Item(each, _name(each), docstring))
        previous = each
    return found


def _name(node: ast.stmt) -> str:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name
        case ast.ClassDef(name=name):
            return name
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case _:
            return ""


def find(tree: ast.Module, target: str) -> list[Item]:
    """The definitions of a qualified name; several if a name is defined more than once."""
    outer, _, name = target.rpartition(".")
    scope: ast.Module | ast.ClassDef | None = tree
    if outer:
        classes = [item.node for item in find(tree, outer)]
        scope = classes[0] if len(classes) == 1 and isinstance(classes[0], ast.ClassDef) else None
    return [item for item in items(scope) if item.name == name] if scope is not None else []


def parameters(node: Function) -> dict[str, tuple[ast.arg, ast.expr | None]]:
    """The parameters of a function that can have a default, each with its own."""
    arguments = node.args
    plain = [*arguments.posonlyargs, *arguments.args]
    missing: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults))
    pairs = [
        *zip(plain, [*missing, *arguments.defaults], strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return {parameter.arg: (parameter, default) for parameter, default in pairs}


def field_call(value: ast.expr | None) -> ast.Call | None:
    """The call of msgspec's `field` that a member has instead of a default, if it has one."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and not value.args:
        return value if value.func.id == "field" else None
    return None


def member_default(node: ast.AnnAssign) -> ast.expr | None:
    """The default of a member."""
    call = field_call(node.value)
    if call is None:
        return node.value
    return next((each.value for each in call.keywords if each.arg == "default"), None)


def same(first: ast.AST | None, second: ast.AST | None) -> bool:
    """Whether two trees are equal, wherever they stand."""
    if first is None or second is None:
        return first is second
    return ast.dump(first) == ast.dump(second)


def first_line(node: ast.stmt) -> int:
    """The line that a statement begins in, with its decorators."""
    decorators = node.decorator_list if isinstance(node, Definition) else []
    return min([node.lineno, *(each.lineno for each in decorators)])


class Places:
    """Offsets in the bytes of a text.

    Args:
        text: The text, with `\\n` line ends.
    """

    def __init__(self, text: str) -> None:
        self.data = text.encode()
        self._starts = [0]
        for line in self.data.split(b"\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)

    def at(self, line: int, column: int) -> int:
        """The offset of a line, from 1, and a column, from 0."""
        return self._starts[line - 1] + column

    def start(self, node: ast.stmt | ast.expr | ast.arg) -> int:
        """Where a node begins, without decorators."""
        return self.at(node.lineno, node.col_offset)

    def end(self, node: ast.stmt | ast.expr | ast.arg) -> int:
        """Where a node ends."""
        assert node.end_lineno is not None  # it was parsed
        assert node.end_col_offset is not None
        return self.at(node.end_lineno, node.end_col_offset)

    def line_end(self, node: ast.stmt) -> int:
        """Where the last line of a node ends, behind a comment on it."""
        end = self.data.find(b"\n", self.end(node))
        return len(self.data) if end < 0 else end

    def spliced(self, start: int, end: int, text: str) -> str:
        """The whole text with another one from an offset to another."""
        return (self.data[:start] + text.encode() + self.data[end:]).decode()


def shifted(text: str, columns: int) -> str:
    """Definitions moved to the right, or with a negative number to the left.

    Lines within strings stay as they are, save those of the docstrings of the definitions.
    """
    tree = parsed(text) if columns > 0 else parsed(f"if 1:\n{text}" if columns else text)
    inside = _string_lines(tree, 1 if columns < 0 else 0)
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if number not in inside and line.strip():
            lines[number - 1] = " " * columns + line if columns > 0 else line[-columns:]
    return "\n".join(lines)


def _string_lines(tree: ast.Module, before: int) -> set[int]:
    """The lines that begin within a string; `before` lines were put above the text."""
    body: Sequence[ast.stmt] = tree.body
    if before and isinstance(tree.body[0], ast.If):
        body = tree.body[0].body
    documented = {
        id(string)
        for node in body
        if isinstance(node, Definition) and (string := docstring_of(node)) is not None
    }
    lines: set[int] = set()
    for node in ast.walk(tree):
        is_string = isinstance(node, ast.JoinedStr) or (
            isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
        )
        if is_string and isinstance(node, ast.expr) and id(node) not in documented:
            assert node.end_lineno is not None  # it was parsed
            lines.update(range(node.lineno + 1 - before, node.end_lineno + 1 - before))
    return lines
