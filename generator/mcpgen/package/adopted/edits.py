"""What was edited in a module: which edits become rules, and why the others do not.

The module as mcpgen writes it and the one on disk are compared by their syntax trees.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from mcpgen.package.adopted import syntax
from mcpgen.package.adopted.replay import renamable
from mcpgen.package.adopted.rules import RuleText
from mcpgen.package.adopted.syntax import Definition, Function, Item

MAX_CHARACTERS = 4_000_000
"""Length of the longest module that is compared. mcpgen writes up to 300,000."""

MAX_EDITS = 200
"""Edits of one module, at most: each rule is replayed on the module by itself."""

_OVERRIDE = "override its template (mcpgen templates), or subclass it in a module of your own"
_OWN = "put it into a module of your own"


@dataclass(frozen=True)
class Refusal:
    """An edit that does not become a rule.

    Attributes:
        module: Path of the module within the package.
        line: The line of the edit, from 1; 0 for the file as a whole.
        what: What was edited.
        reason: Why it becomes no rule.
        instead: What to do instead.
    """

    module: str
    line: int
    what: str
    reason: str
    instead: str

    def __str__(self) -> str:
        place = f"{self.module}:{self.line}" if self.line else self.module
        return f"{place}: {self.what}: {self.reason}; {self.instead}"


@dataclass
class Edits:
    """The edits of one module.

    Attributes:
        module: Path of the module within the package.
        rules: The rules that they become, in the order of the module.
        refusals: Those that become none.
    """

    module: str
    rules: list[RuleText] = field(default_factory=list[RuleText])
    refusals: list[Refusal] = field(default_factory=list[Refusal])

    def refuse(self, node: ast.stmt | int, what: str, reason: str, instead: str) -> None:
        """Note an edit that becomes no rule."""
        line = node if isinstance(node, int) else syntax.first_line(node)
        self.refusals.append(Refusal(self.module, line, what, reason, instead))


def compared(
    module: str,
    before: str,
    after: str,
    uses: Callable[[str], str],
    movable: Collection[str] = (),
) -> Edits:
    """The edits of one module.

    Args:
        module: Its path within the package.
        before: Its text as mcpgen writes it.
        after: Its text as it was edited.
        uses: Says where the package uses a name, or gives an empty text.
        movable: Qualified names of functions whose place in their class does not count.
    """
    edits = Edits(module)
    if len(after) > MAX_CHARACTERS:
        edits.refuse(0, "the file", f"has more than {MAX_CHARACTERS} characters", _OWN)
        return edits
    try:
        tree = syntax.parsed(after)
    except SyntaxError as error:
        edits.refuse(
            error.lineno or 0, "the file", f"is no Python: {error.msg}", "correct it first"
        )
        return edits
    comparison = _Comparison(edits, after, uses, frozenset(movable))
    written = syntax.parsed(before)
    try:
        _compare_docstrings(edits, "", written.body[0], *map(syntax.docstring_of, (written, tree)))
        comparison.bodies(written, tree, "")
    except RecursionError:
        return _refused(module, "has an expression that is nested too deeply to be compared")
    except SyntaxError:
        return _refused(module, "has a definition whose text cannot be moved")
    except _TooManyEditsError:
        return _refused(module, f"has more than {MAX_EDITS} edits")
    if len(edits.rules) + len(edits.refusals) > MAX_EDITS:
        return _refused(module, f"has more than {MAX_EDITS} edits")
    _compare_comments(edits, before, after, comparison.added_lines)
    return edits


def _refused(module: str, reason: str) -> Edits:
    """The edits of a module none of which become rules."""
    edits = Edits(module)
    edits.refuse(0, "the file", reason, _OWN)
    return edits


class _TooManyEditsError(Exception):
    """A body has more further statements than edits are compared."""


class _Comparison:
    """The comparison of one module with its edited form."""

    def __init__(
        self, edits: Edits, text: str, uses: Callable[[str], str], movable: frozenset[str]
    ) -> None:
        self._edits = edits
        self._lines = text.split("\n")
        self._uses = uses
        self._movable = movable
        self.added_lines: set[int] = set()

    def bodies(
        self, before: ast.Module | ast.ClassDef, after: ast.Module | ast.ClassDef, outer: str
    ) -> None:
        """Compare what stands in a module or class."""
        old, new = _by_key(syntax.items(before)), _by_key(syntax.items(after))
        gone = [key for key in old if key not in new]
        come = [key for key in new if key not in old]
        if len(come) > MAX_EDITS:
            raise _TooManyEditsError
        for key in gone:
            successor = next((other for other in come if _renamed(old[key], new[other])), None)
            if successor is None:
                self._refuse_gone(old[key], after, outer)
            else:
                come.remove(successor)
                self._rename(old[key], new[successor], outer)
        self._add([new[key] for key in come], {name for name, _ in old}, outer, _last_lines(after))
        common = [key for key in old if key in new]
        fixed = [key for key in common if _qualified(outer, key[0]) not in self._movable]
        if fixed != [key for key in new if key in fixed]:
            line = after.body[0].lineno
            what = outer or "the module"
            self._edits.refuse(line, what, "its statements have another order", _OVERRIDE)
        for key in common:
            several = (key[0], 1) in old or (key[0], 1) in new
            self._item(old[key], new[key], _qualified(outer, key[0]), several=several)

    def _instead(self, target: str) -> str:
        """What to do instead of an edit of a definition."""
        return "change its rule instead" if target in self._movable else _OVERRIDE

    def _refuse_gone(self, item: Item, after: ast.Module | ast.ClassDef, outer: str) -> None:
        line = after.lineno if isinstance(after, ast.ClassDef) else 1
        if not item.name:
            what, text = outer or "the module", ast.unparse(item.node).split("\n")[0]
            self._edits.refuse(line, what, f"without the statement {text!r}", _OVERRIDE)
            return
        target = _qualified(outer, item.name)
        self._edits.refuse(
            line, target, "a definition that was removed or renamed", self._instead(target)
        )

    def _rename(self, old: Item, new: Item, outer: str) -> None:
        target = _qualified(outer, old.name)
        what = f"{target}, renamed to {new.name}"
        instead = "add a function of the new name beside it"
        if old.name.startswith("_") or new.name.startswith("_"):
            self._edits.refuse(new.node, what, "only public names are renamed", _OVERRIDE)
        elif isinstance(old.node, ast.AnnAssign) and not renamable(old.node):
            self._edits.refuse(new.node, what, "its name is that on the wire", instead)
        elif use := self._uses(old.name):
            self._edits.refuse(new.node, what, use, instead)
        else:
            self._rule(RuleText("rename", self._edits.module, new.name, target))

    def _add(
        self, items: Sequence[Item], taken: Collection[str], outer: str, ends: dict[int, int]
    ) -> None:
        """Take further functions as they stand; those of one name together, as in a property."""
        groups: dict[str, list[Item]] = {}
        for item in items:
            target = _qualified(outer, item.name) or outer or "the module"
            if isinstance(item.node, ast.Import | ast.ImportFrom):
                instead = "import within the function that needs it"
                self._edits.refuse(item.node, target, "a further import", instead)
            elif not isinstance(item.node, Function):
                kind = "a further class" if isinstance(item.node, ast.ClassDef) else "a further"
                kind = kind if isinstance(item.node, ast.ClassDef) else f"{kind} statement"
                self._edits.refuse(item.node, target, kind, _OWN)
            elif item.name in taken:
                reason = "a further definition of a name that mcpgen writes"
                self._edits.refuse(item.node, target, reason, _OVERRIDE)
            else:
                groups.setdefault(item.name, []).append(item)
        for name, group in groups.items():
            sources = [self._source(item.node, ends) for item in group]
            target = _qualified(outer, name)
            self._rule(RuleText("add", self._edits.module, "\n\n".join(sources) + "\n", target))

    def _source(self, node: ast.stmt, ends: dict[int, int]) -> str:
        """The lines of a definition with the comments above it, without its indentation."""
        first = syntax.first_line(node)
        assert node.end_lineno is not None  # it was parsed
        previous = max((end for end in ends.values() if end < first), default=0)
        while first - 1 > previous and self._lines[first - 2].lstrip().startswith("#"):
            first -= 1
        lines = range(first, node.end_lineno + 1)
        self.added_lines.update(lines)
        text = "\n".join(self._lines[first - 1 : node.end_lineno])
        return syntax.shifted(text, -node.col_offset)

    def _item(self, old: Item, new: Item, target: str, *, several: bool) -> None:
        if not several:
            _compare_docstrings(self._edits, target, new.node, old.docstring, new.docstring)
        elif syntax.text_of(old.docstring) != syntax.text_of(new.docstring):
            self._edits.refuse(new.node, target, "one of several definitions", _OVERRIDE)
        match old.node, new.node:
            case (ast.ClassDef() as before, ast.ClassDef() as after):
                if not syntax.same(_head(before), _head(after)):
                    reason = "another base class or decorator"
                    self._edits.refuse(after, target, reason, _OVERRIDE)
                self.bodies(before, after, target)
            case (
                ast.FunctionDef() | ast.AsyncFunctionDef() as before,
                ast.FunctionDef() | ast.AsyncFunctionDef() as after,
            ):
                self._function(before, after, target, several=several)
            case (ast.AnnAssign() as before, ast.AnnAssign() as after):
                self._member(before, after, target)
            case (before, after) if not syntax.same(before, after):
                self._edits.refuse(after, target or "a statement", "another value", _OVERRIDE)
            case _:
                return

    def _function(self, before: Function, after: Function, target: str, *, several: bool) -> None:
        if not syntax.same(_head(before), _head(after)):
            reason = "another signature or decorator"
            self._edits.refuse(after, target, reason, self._instead(target))
            return
        old_body, new_body = map(_statements, (before, after))
        for old, new in zip(old_body, new_body, strict=False):
            if not syntax.same(old, new):
                self._edits.refuse(new, target, "an edit within its body", self._instead(target))
                break
        else:
            if len(old_body) != len(new_body):
                line = (new_body or [after])[-1]
                self._edits.refuse(line, target, "an edit within its body", self._instead(target))
        parameters = syntax.parameters(after)
        for name, (_, default) in syntax.parameters(before).items():
            parameter, now = parameters[name]
            if syntax.same(default, now):
                continue
            what = f"{target}({name})"
            if now is None:
                self._edits.refuse(parameter.lineno, what, "a default that was removed", _OVERRIDE)
            elif several:
                reason = "one of several definitions"
                self._edits.refuse(parameter.lineno, what, reason, _OVERRIDE)
            else:
                self._rule(_default_rule(self._edits.module, target, name, default, now))

    def _member(self, before: ast.AnnAssign, after: ast.AnnAssign, target: str) -> None:
        if not syntax.same(_head(before), _head(after)):
            self._edits.refuse(after, target, "another type or wire name", _OVERRIDE)
            return
        old, new = syntax.member_default(before), syntax.member_default(after)
        if syntax.same(old, new):
            return
        if "." not in target or "ClassVar" in ast.unparse(before.annotation):
            self._edits.refuse(after, target, "another value of a constant", _OVERRIDE)
        elif new is None:
            self._edits.refuse(after, target, "a default that was removed", _OVERRIDE)
        else:
            self._rule(_default_rule(self._edits.module, target, "", old, new))

    def _rule(self, rule: RuleText) -> None:
        self._edits.rules.append(rule)


def _default_rule(
    module: str, target: str, parameter: str, old: ast.expr | None, new: ast.expr
) -> RuleText:
    before = None if old is None else ast.unparse(old)
    return RuleText("default", module, ast.unparse(new), target, parameter, before)


def _compare_docstrings(
    edits: Edits,
    target: str,
    node: ast.stmt,
    before: ast.Constant | None,
    after: ast.Constant | None,
) -> None:
    old, new = syntax.text_of(before), syntax.text_of(after)
    if old == new:
        return
    if new is None:
        what = target or "the module"
        edits.refuse(node, what, "its docstring was removed", "give it another text")
    else:
        edits.rules.append(RuleText("docstring", edits.module, new, target, old=old))


def _by_key(items: Sequence[Item]) -> dict[tuple[str, int | str], Item]:
    """Statements by name and number among those of that name; others by what they say."""
    found: dict[tuple[str, int | str], Item] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for item in items:
        begin = "" if item.name else ast.dump(item.node)
        number = counts[item.name, begin]
        counts[item.name, begin] += 1
        found[item.name, f"{begin}{number or ''}" if begin else number] = item
    return found


def _qualified(outer: str, name: str) -> str:
    return f"{outer}.{name}" if outer and name else name


def _renamed(old: Item, new: Item) -> bool:
    """Whether two definitions differ in their name alone."""
    if type(old.node) is not type(new.node) or isinstance(old.node, ast.ClassDef):
        return False
    if not old.name or not new.name:
        return False
    node = deepcopy(new.node)
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            node.name = old.name
        case ast.AnnAssign(target=ast.Name() as name):
            name.id = old.name
        case _:
            return False
    same_text = syntax.text_of(old.docstring) == syntax.text_of(new.docstring)
    return same_text and syntax.same(old.node, node)


def _head(node: Definition | ast.AnnAssign) -> ast.stmt:
    """A definition without what rules can change, and without its body."""
    copy = deepcopy(node)
    match copy:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            copy.args.defaults = []
            copy.args.kw_defaults = []
            copy.body = []
        case ast.ClassDef():
            copy.body = []
        case ast.AnnAssign():
            call = syntax.field_call(copy.value)
            if call is None:
                copy.value = None
            else:
                call.keywords = [each for each in call.keywords if each.arg != "default"]
    return copy


def _statements(node: Function) -> list[ast.stmt]:
    return node.body[1:] if syntax.docstring_of(node) else node.body


def _last_lines(node: ast.Module | ast.ClassDef) -> dict[int, int]:
    """The last line of each statement, docstrings included, by its first."""
    begin = {node.lineno: node.lineno} if isinstance(node, ast.ClassDef) else {}
    return begin | {each.lineno: each.end_lineno or each.lineno for each in node.body}


def _compare_comments(edits: Edits, before: str, after: str, added: Collection[int]) -> None:
    """Refuse comments that were added or removed outside of further functions."""
    old = Counter(text for _, text in _comments(before))
    for line, text in _comments(after):
        if line in added:
            continue
        if not old[text]:
            instead = "put it into a docstring, or override the template"
            edits.refuse(line, "a comment", "no rule keeps it", instead)
        old[text] -= 1
    for text in (+old).elements():
        edits.refuse(0, f"the comment {text[:60]!r}", "was removed or changed", "put it back")


def _comments(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
