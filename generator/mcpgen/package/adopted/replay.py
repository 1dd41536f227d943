"""Rules replayed on the modules that were just rendered, before these are formatted.

Each rule finds its target in the syntax tree, holds what stands there against what stood there when
the rule was made, and puts its own text in that place. Nothing is searched for in the text.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Mapping

from mcpgen.errors import AdoptedError, shown
from mcpgen.literals import docstring
from mcpgen.package.adopted import syntax
from mcpgen.package.adopted.rules import Kind, Rule
from mcpgen.package.adopted.syntax import Definition, Function, Item, Places

_SHOWN = 120
"""Characters of a value that an error shows."""


def replayed(
    files: Mapping[str, str], rules: Iterable[Rule], copied: Collection[str]
) -> dict[str, str]:
    """The files of a package with its rules applied, in order.

    A rule for a module that the package does not have is left out.

    Args:
        files: Text by path.
        rules: The rules.
        copied: Paths of modules that are the same in every package, which take no rules.

    Raises:
        AdoptedError: A rule is not about something that mcpgen writes now, or its text cannot
            stand there.
    """
    texts = dict(files)
    for rule in rules:
        module = rule.text.module
        if module not in texts:
            continue
        if module in copied:
            raise rule.place.at("module").error("a rendered module, not a copied one", module)
        if rule.text.kind == "rename" and (use := used(texts, rule.text.target)):
            raise rule.place.at("target").error(
                f"a name without uses, since {use}", rule.text.target
            )
        texts[module] = applied(texts[module], rule)
    return texts


def applied(text: str, rule: Rule) -> str:
    """A module with one rule applied.

    Raises:
        AdoptedError: See `replayed`.
    """
    tree, places = syntax.parsed(text), Places(text)
    try:
        result = _APPLY[rule.text.kind](tree, places, rule)
    except RecursionError:
        raise rule.place.at("new").error("a rule that is not nested as deep", rule.what) from None
    try:
        syntax.parsed(result)
    except SyntaxError as error:
        raise rule.place.at("new").error(f"Python for the {rule.what}", str(error.msg)) from None
    return result


def _target(tree: ast.Module, rule: Rule) -> Item:
    found = syntax.find(tree, rule.text.target)
    if len(found) != 1:
        came = "none" if not found else f"{len(found)} of them"
        raise rule.place.at("target").error(
            f"one definition {rule.text.target} in {rule.text.module}", came
        )
    return found[0]


def _expect_old(rule: Rule, now: str | None, *, equal: bool) -> None:
    """Refuse a rule if mcpgen writes something else now than when the rule was made."""
    if equal:
        return
    present = "none" if now is None else shown(now, _SHOWN)
    came = "none" if rule.text.old is None else shown(rule.text.old, _SHOWN)
    raise AdoptedError(
        rule.place.source,
        rule.place.at("old").pointer,
        f"what mcpgen writes now as the {rule.what} of {rule.text.module}, {present} (take over"
        " what matters, then set old to it)",
        came,
    )


def _with_docstring(tree: ast.Module, places: Places, rule: Rule) -> str:
    new = rule.text.new
    if not rule.text.target:
        now, column, first = syntax.docstring_of(tree), 0, tree.body[0]
        after = None
    else:
        item = _target(tree, rule)
        now, after, first = item.docstring, item.node, item.node
        column = item.node.col_offset
        if isinstance(item.node, Definition):
            after, first = None, item.node.body[0]
            column = column + 4 if _on_one_line(places, first) else first.col_offset
    text = syntax.text_of(now)
    _expect_old(rule, text, equal=text == rule.text.old)
    indent = " " * column
    lines = new.split("\n")
    body = "\n".join([lines[0], *(indent + line if line.strip() else "" for line in lines[1:])])
    written = docstring(f"{body}\n{indent}" if len(lines) > 1 else body)
    if now is not None:
        return places.spliced(places.start(now), places.end(now), written)
    if after is not None:
        end = places.line_end(after)
        return places.spliced(end, end, f"\n{indent}{written}")
    start = places.at(syntax.first_line(first), first.col_offset)
    begin = f"\n{indent}" if rule.text.target and _on_one_line(places, first) else ""
    return places.spliced(start, start, f"{begin}{written}\n{indent}")


def _on_one_line(places: Places, first: ast.stmt) -> bool:
    """Whether the body of a definition stands behind its colon."""
    line = places.at(syntax.first_line(first), 0)
    return bool(places.data[line : line + first.col_offset].strip())


def _with_default(tree: ast.Module, places: Places, rule: Rule) -> str:
    try:
        new = ast.unparse(syntax.expression(rule.text.new))
    except SyntaxError as error:
        raise rule.place.at("new").error("an expression", str(error.msg)) from None
    node = _target(tree, rule).node
    begin = " = "
    if isinstance(node, ast.AnnAssign) and not rule.text.parameter:
        now, call = syntax.member_default(node), syntax.field_call(node.value)
        before = places.end(node.annotation)
        if call is not None:
            before = places.data.index(b"(", places.end(call.func)) + 1
            begin, new = "default=", f"{new}, " if now is None and call.keywords else new
    elif isinstance(node, Function) and rule.text.parameter in syntax.parameters(node):
        parameter, now = syntax.parameters(node)[rule.text.parameter]
        before = places.end(parameter)
    else:
        raise rule.place.at("target").error(
            f"a parameter or member in {rule.text.module} that may have a default", rule.what
        )
    _expect_old(rule, ast.unparse(now) if now is not None else None, equal=_same_default(rule, now))
    if now is None:
        return places.spliced(before, before, f"{begin}{new}")
    return places.spliced(places.start(now), places.end(now), new)


def _same_default(rule: Rule, now: ast.expr | None) -> bool:
    if rule.text.old is None or now is None:
        return rule.text.old is None and now is None
    try:
        return syntax.same(syntax.expression(rule.text.old), now)
    except SyntaxError as error:
        raise rule.place.at("old").error("an expression", str(error.msg)) from None


def _with_addition(tree: ast.Module, places: Places, rule: Rule) -> str:
    outer, _, name = rule.text.target.rpartition(".")
    source = rule.text.new.strip("\n")
    _check_source(rule, source, name)
    if syntax.find(tree, rule.text.target):
        raise rule.place.at("target").error(
            f"a name that mcpgen does not write in {rule.text.module}", rule.text.target
        )
    column, last = 0, tree.body[-1]
    if outer:
        found = [item.node for item in syntax.find(tree, outer)]
        if len(found) != 1 or not isinstance(found[0], ast.ClassDef):
            raise rule.place.at("target").error(f"a class {outer} in {rule.text.module}", "none")
        last = found[0].body[-1]
        column = found[0].col_offset + 4
    end = places.line_end(last)
    return places.spliced(end, end, f"\n\n{syntax.shifted(source, column)}\n")


def _check_source(rule: Rule, source: str, name: str) -> None:
    """Refuse a source that is more, or less, than the definition of one function."""
    expected = f"the definition of a function {name}"
    try:
        body = syntax.parsed(source).body
    except SyntaxError as error:
        raise rule.place.at("new").error(expected, str(error.msg)) from None
    names = [each.name if isinstance(each, Function) else "a statement" for each in body]
    if not names or {*names} != {name} or "\r" in source:
        raise rule.place.at("new").error(expected, ", ".join(names) or "nothing")


def _with_name(tree: ast.Module, places: Places, rule: Rule) -> str:
    node = _target(tree, rule).node
    outer, _, old = rule.text.target.rpartition(".")
    new = rule.text.new
    if not new.isidentifier() or syntax.find(tree, f"{outer}.{new}" if outer else new):
        raise rule.place.at("new").error(f"a name that mcpgen does not write in {outer}", new)
    if isinstance(node, Function):
        start = places.data.index(b"def", places.start(node)) + len("def")
        start = places.data.index(old.encode(), start)
    elif isinstance(node, ast.AnnAssign) and renamable(node):
        start = places.start(node)
    else:
        raise rule.place.at("target").error(
            "a function, a method or a member with a wire name of its own", rule.text.target
        )
    return places.spliced(start, start + len(old.encode()), new)


_APPLY: Mapping[Kind, Callable[[ast.Module, Places, Rule], str]] = {
    "docstring": _with_docstring,
    "default": _with_default,
    "add": _with_addition,
    "rename": _with_name,
}
"""What applies a rule, by its kind."""


def renamable(node: ast.AnnAssign) -> bool:
    """Whether the name of a member is not that on the wire."""
    call = syntax.field_call(node.value)
    return call is not None and any(each.arg == "name" for each in call.keywords)


def used(texts: Mapping[str, str], target: str) -> str:
    """Where a package uses a name beside its definition, in words; empty if it does not.

    Every attribute, variable, argument and string of that text counts: which object is meant cannot
    be told from the syntax.
    """
    name = target.rpartition(".")[2]
    for path, text in texts.items():
        if path.endswith(".py") and name in text:
            for node in ast.walk(syntax.parsed(text)):
                if _uses(node, name):
                    line = f":{node.lineno}" if isinstance(node, ast.expr) else ""
                    return f"{path}{line} uses it"
    return ""


def _uses(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Attribute(attr=found) | ast.keyword(arg=found) | ast.alias(name=found):
            return found == name
        case ast.Name(id=found, ctx=ast.Load()) | ast.Constant(value=found):
            return bool(found == name)
        case _:
            return False
