"""The values of names in the source text of a program, as far as a package of mcpgen is concerned.

Nothing is imported or run. A variable has the class that an import, an assignment, an annotation or
a `with` gives it, also across the modules of the program.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from mcpgen.model import exports

PUBLIC = frozenset(name for row in exports.EXPORTS for name in row.names)
"""The public names of a package with everything."""

CLASSES = {
    "Server": "Server",
    "Context": "Context",
    "Client": "Client",
    "SyncClient": "Client",
    "ClientGroup": "Client",
    "SyncClientGroup": "Client",
}
"""Public classes, by the class whose members they have."""

_OPENERS = {"connect": "Client", "connect_sync": "Client", "connected": "Pair"}
"""Public functions that open a client, with the class of what they open."""

_MAKERS = frozenset({"from_openapi", "proxy"})
"""Class methods of `Server` that make one."""


@dataclass(frozen=True)
class Exported:
    """A public name of the package."""

    name: str


@dataclass(frozen=True)
class Instance:
    """A value of one of the classes of the package."""

    of: str


@dataclass(frozen=True)
class Imported:
    """A module by its absolute name: the package, one of the program, or a foreign one."""

    name: str


@dataclass(frozen=True)
class Foreign:
    """A value that does not come from the package."""


Value: TypeAlias = "Exported | Instance | Imported | Foreign | UserClass | None"
"""The value of an expression; `None` if it is unknown."""

FOREIGN = Foreign()


@dataclass(eq=False)
class Binding:
    """One binding of a name: a value, or an expression that is evaluated when it is needed."""

    scope: Scope
    node: ast.expr | None = None
    is_annotation: bool = False
    result: Value = None
    is_evaluated: bool = False

    def value(self) -> Value:
        """The value; unknown while it depends on itself, or if that takes too many steps."""
        if self.node is not None and not self.is_evaluated:
            self.is_evaluated = True
            evaluate = _value_of_annotation if self.is_annotation else value_of
            with suppress(RecursionError):
                self.result = evaluate(self.node, self.scope)
        return self.result


_Bindings: TypeAlias = "defaultdict[str, list[Binding]]"


@dataclass(eq=False)
class Scope:
    """The names that a module, a class or a function binds."""

    module: Module
    outer: Scope | None = None
    bindings: _Bindings = field(default_factory=lambda: defaultdict(list))
    takes_all: bool = False
    """Whether it imports all public names of the package, by `*`."""

    def lookup(self, name: str) -> Value:
        """The value of a name; one that nothing binds is a builtin."""
        if name in self.bindings:
            return _best(binding.value() for binding in self.bindings[name])
        if self.takes_all and name in PUBLIC:
            return Exported(name)
        return FOREIGN if self.outer is None else self.outer.lookup(name)


@dataclass(eq=False)
class UserClass:
    """A class of the program; its instances have what its methods assign to `self`."""

    scope: Scope
    node: ast.ClassDef

    def instance(self) -> Value:
        """Its instances: those of the class of the package that it is derived from, if any."""
        for base in (value_of(each, self.scope) for each in self.node.bases):
            made = base.instance() if isinstance(base, UserClass) and base is not self else base
            if isinstance(made, Instance):
                return made
            if isinstance(made, Exported) and made.name in CLASSES:
                return Instance(CLASSES[made.name])
        return self

    def attribute(self, name: str) -> Value:
        """An attribute of its instances."""
        return _best(binding.value() for binding in self._attributes.get(name, ()))

    @cached_property
    def _attributes(self) -> _Bindings:
        """Names that its body binds, and what its methods assign to attributes of `self`."""
        scope = Scope(self.scope.module, self.scope)
        bind(self.node.body, scope)
        attributes = defaultdict(list, scope.bindings)
        for method in self.node.body:
            if not isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            inner = function_scope(method, scope, None)
            first = method.args.args[0].arg if method.args.args else ""
            for each in ast.walk(method):
                match each:
                    case ast.Assign([ast.Attribute(ast.Name(name), attr)], value) if name == first:
                        attributes[attr].append(Binding(inner, value))
                    case ast.AnnAssign(ast.Attribute(ast.Name(name), attr), hint) if name == first:
                        attributes[attr].append(Binding(inner, hint, is_annotation=True))
                    case _:
                        pass
        return attributes


@dataclass(eq=False)
class Module:
    """A module of the program."""

    program: Program
    path: str
    name: str
    tree: ast.Module
    is_package: bool
    scope: Scope = field(init=False)

    def __post_init__(self) -> None:
        self.scope = Scope(self)
        bind(self.tree.body, self.scope)

    def source_of(self, node: ast.ImportFrom) -> str:
        """The absolute name of the module that `from ... import` names."""
        parents = self.name.split(".") if node.level else []
        base = parents[: len(parents) - node.level + self.is_package]
        return ".".join([*base, *([node.module] if node.module else [])])


class Program:
    """The modules of a program, found by the end of their names: the root of imports is unknown."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.modules: list[Module] = []
        self._by_name: dict[str, Module] = {}

    def add(self, path: str, text: str) -> None:
        """Add a module; a text that is no Python is left out."""
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        parts = [part for part in Path(path).with_suffix("").parts if part.isidentifier()]
        is_package = parts[-1:] == ["__init__"]
        parts = parts[:-1] if is_package else parts
        module = Module(self, path, ".".join(parts), tree, is_package)
        for start in range(len(parts)):
            self._by_name.setdefault(".".join(parts[start:]), module)
        self.modules.append(module)

    def is_package(self, name: str) -> bool:
        """Whether a module is the package or one of its modules."""
        return f".{self.package}." in f".{name}."

    def member(self, module: str, name: str) -> Value:
        """A name of a module: of the package, of the program, or of a foreign one."""
        full = f"{module}.{name}"
        if self.is_package(module):
            return Exported(name)
        if self.is_package(full) or full in self._by_name:
            return Imported(full)
        if module in self._by_name:
            return self._by_name[module].scope.lookup(name)
        return Imported(full)


def _best(values: Iterable[Value]) -> Value:
    """The first value that is known; a foreign one counts only if all are foreign."""
    result: Value = None
    for position, value in enumerate(values):
        if value is not None and value is not FOREIGN:
            return value
        result = value if position == 0 or value is None else result
    return result


def bind(body: Iterable[ast.AST], scope: Scope) -> None:
    """Add the names that statements bind to a scope, without those of functions and classes."""
    waiting = [*body]
    while waiting:
        node = waiting.pop()
        inner = True
        match node:
            case ast.Import(names=names):
                for each in names:
                    name = each.name if each.asname else each.name.partition(".")[0]
                    scope.bindings[each.asname or name].append(
                        Binding(scope, result=Imported(name))
                    )
            case ast.ImportFrom(names=names):
                source, program = scope.module.source_of(node), scope.module.program
                for each in names:
                    scope.takes_all |= each.name == "*" and program.is_package(source)
                    value = ast.Attribute(_Quoted(source), each.name)
                    scope.bindings[each.asname or each.name].append(Binding(scope, value))
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                scope.bindings[node.name].append(Binding(scope, node.returns, is_annotation=True))
                inner = False
            case ast.ClassDef():
                scope.bindings[node.name].append(Binding(scope, result=UserClass(scope, node)))
                inner = False
            case ast.Lambda():
                inner = False
            case ast.Assign():
                for target in node.targets:
                    _bind_target(target, Binding(scope, node.value))
            case ast.AnnAssign():
                _bind_target(node.target, Binding(scope, node.annotation, is_annotation=True))
            case ast.NamedExpr():
                _bind_target(node.target, Binding(scope, node.value))
            case ast.withitem(optional_vars=ast.expr() as target):
                _bind_target(target, Binding(scope, node.context_expr))
            case ast.For() | ast.AsyncFor() | ast.comprehension():
                _bind_target(node.target, Binding(scope))
            case ast.ExceptHandler(name=str(name)):
                scope.bindings[name].append(Binding(scope, result=FOREIGN))
            case _:
                pass
        if inner:
            waiting += ast.iter_child_nodes(node)


def function_scope(
    node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope, owner: UserClass | None
) -> Scope:
    """The scope of a function in another scope, or of a method of a class."""
    inner = Scope(scope.module, scope)
    arguments = node.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for position, each in enumerate(named):
        binding = Binding(scope, each.annotation, is_annotation=True)
        if owner is not None and position == 0 and each.annotation is None:
            binding = Binding(scope, result=owner.instance())
        inner.bindings[each.arg].append(binding)
    for rest in (arguments.vararg, arguments.kwarg):
        if rest is not None:
            inner.bindings[rest.arg].append(Binding(scope, result=FOREIGN))
    bind(node.body, inner)
    return inner


class _Quoted(ast.expr):
    """A module by its name, in the place of an expression."""

    def __init__(self, module: str) -> None:
        self.module = module


def _bind_target(target: ast.expr, binding: Binding) -> None:
    """Bind a name; the names in a tuple are unknown."""
    if isinstance(target, ast.Name):
        binding.scope.bindings[target.id].append(binding)
    elif isinstance(target, ast.Tuple | ast.List | ast.Starred):
        for each in ast.walk(target):
            if isinstance(each, ast.Name):
                binding.scope.bindings[each.id].append(Binding(binding.scope))


def value_of(node: ast.expr, scope: Scope) -> Value:
    """The value of an expression."""
    match node:
        case ast.Name(id=name):
            return scope.lookup(name)
        case _Quoted(module=module):
            return Imported(module)
        case ast.Attribute(value=inner, attr=name):
            return _attribute(value_of(inner, scope), name, scope.module.program)
        case ast.Await(value=inner) | ast.NamedExpr(value=inner) | ast.Starred(value=inner):
            return value_of(inner, scope)
        case ast.IfExp(body=body, orelse=other):
            return _best((value_of(body, scope), value_of(other, scope)))
        case ast.BoolOp(values=values):
            return _best(value_of(each, scope) for each in values)
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _MAKERS:
            made = value_of(inner, scope)
            is_server = made == Exported("Server") or isinstance(made, UserClass)
            return _value_of_call(made) if is_server else None
        case ast.Call(func=function):
            return _value_of_call(value_of(function, scope))
        case ast.Constant() | ast.Dict() | ast.List() | ast.Set() | ast.Tuple() | ast.JoinedStr():
            return FOREIGN
        case _:
            return None


def _attribute(value: Value, name: str, program: Program) -> Value:
    match value:
        case Imported(name=module):
            return program.member(module, name)
        case Instance(of="Pair") if name == "client":
            return Instance("Client")
        case UserClass():
            return value.attribute(name)
        case Foreign():
            return FOREIGN
        case _:
            return None


def _value_of_call(value: Value) -> Value:
    """The value of a call; a function of the program stands for what it is annotated to return."""
    match value:
        case Exported(name=name):
            made = CLASSES.get(name) or _OPENERS.get(name)
            return FOREIGN if made is None else Instance(made)
        case UserClass():
            return value.instance()
        case Imported():
            return FOREIGN
        case _:
            return value


def _value_of_annotation(node: ast.expr, scope: Scope) -> Value:
    """The value of a name with an annotation: of a class of the package that occurs in it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        with suppress(SyntaxError, ValueError, RecursionError):
            node = ast.parse(node.value, mode="eval").body
    result: Value = FOREIGN
    for each in ast.walk(node):
        if isinstance(each, ast.Name | ast.Attribute):
            value = value_of(each, scope)
            if isinstance(value, Exported) and value.name in CLASSES:
                return Instance(CLASSES[value.name])
            result = value.instance() if isinstance(value, UserClass) else result
    return result
