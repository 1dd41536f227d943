"""The servers of a program: the names that its modules bind to servers of another SDK.

Nothing is imported or run. A name is a server if it is bound to a call of the class of servers, if
its annotation is that class, or if another module of the program binds it so and it is imported
from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import libcst as cst
from libcst.metadata import QualifiedNameProvider, QualifiedNameSource

from mcpgen.port import alternatives


class Level(Enum):
    """The kinds of servers of other SDKs."""

    LOW = "low level"
    OFFICIAL = "official 1"
    OFFICIAL_2 = "official 2"
    FASTMCP = "fastmcp"


@dataclass
class Servers:
    """The servers that a module binds.

    Attributes:
        names: Kinds by the text of the expression, such as `mcp` and `self.server`.
        makers: Kinds of what functions of the module return, by their names.
    """

    names: dict[str, Level] = field(default_factory=dict[str, Level])
    makers: dict[str, Level] = field(default_factory=dict[str, Level])


def sdk_name(visitor: cst.MetadataDependent, node: cst.CSTNode) -> str | None:
    """The qualified name of an expression that comes from another SDK; `None` for any other."""
    names = visitor.get_metadata(QualifiedNameProvider, node, set())
    for each in names:
        if each.source is QualifiedNameSource.IMPORT and alternatives.is_sdk(each.name):
            return each.name
    return None


def level_of(name: str | None) -> Level | None:
    """The kind of servers that a class makes, by its qualified name; `None` for another class."""
    if name is None:
        return None
    if name in alternatives.LOW_LEVEL:
        return Level.LOW
    if alternatives.is_high_level(name):
        if name.startswith("fastmcp"):
            return Level.FASTMCP
        return Level.OFFICIAL if name.endswith(".FastMCP") else Level.OFFICIAL_2
    return None


def dotted_name(node: cst.CSTNode) -> str:
    """The text of a name or of a chain of attributes; empty for another expression."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        owner = dotted_name(node.value)
        return f"{owner}.{node.attr.value}" if owner else ""
    return ""


def annotated_class(node: cst.BaseExpression) -> cst.BaseExpression:
    """The class of an annotation, without its arguments and without `| None`."""
    if isinstance(node, cst.Subscript):
        if dotted_name(node.value).rpartition(".")[2] == "Optional":
            inner = node.slice[0].slice
            return annotated_class(inner.value) if isinstance(inner, cst.Index) else node
        return node.value
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitOr):
        return annotated_class(node.left)
    return node


class _Finder(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (QualifiedNameProvider,)

    def __init__(self) -> None:
        super().__init__()
        self.servers = Servers()
        self.imported: dict[str, tuple[str, str]] = {}
        self._functions: list[str] = []

    def visit_Assign(self, node: cst.Assign) -> None:
        level = self._level(node.value)
        for each in node.targets:
            if level is not None and (name := dotted_name(each.target)):
                self.servers.names[name] = level

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        level = self._class(node.annotation.annotation)
        if level is None and node.value is not None:
            level = self._level(node.value)
        if level is not None and (name := dotted_name(node.target)):
            self.servers.names[name] = level

    def visit_Param(self, node: cst.Param) -> None:
        if node.annotation is not None:
            level = self._class(node.annotation.annotation)
            if level is not None:
                self.servers.names[node.name.value] = level

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        if node.returns is not None:
            level = self._class(node.returns.annotation)
            if level is not None:
                self.servers.makers[node.name.value] = level

    def visit_ImportFrom(self, node: cst.ImportFrom) -> None:
        module = "" if node.module is None else dotted_name(node.module)
        if isinstance(node.names, cst.ImportStar) or alternatives.is_sdk(module):
            return
        for each in node.names:
            name = dotted_name(each.name)
            local = name if each.asname is None else dotted_name(each.asname.name)
            self.imported[local] = (module.rpartition(".")[2], name)

    def _level(self, node: cst.BaseExpression) -> Level | None:
        if not isinstance(node, cst.Call):
            return None
        level = level_of(sdk_name(self, node.func))
        if level is None and isinstance(node.func, cst.Name):
            level = self.servers.makers.get(node.func.value)
        return level

    def _class(self, node: cst.BaseExpression) -> Level | None:
        return level_of(sdk_name(self, annotated_class(node)))


def servers_of(modules: Mapping[str, cst.MetadataWrapper]) -> dict[str, Servers]:
    """The servers of each module of a program, by the path of the module.

    Imports are followed by the last part of the name of a module.
    """
    finders: dict[str, _Finder] = {}
    for path, wrapper in modules.items():
        finder = finders[path] = _Finder()
        wrapper.visit(finder)
    by_stem: dict[str, Servers] = {}
    for path, finder in finders.items():
        parts = path.removesuffix(".py").split("/")
        stem = parts[-2] if parts[-1] == "__init__" and len(parts) > 1 else parts[-1]
        by_stem.setdefault(stem, Servers()).names.update(finder.servers.names)
        by_stem[stem].makers.update(finder.servers.makers)
    for _ in finders:  # a name may pass through several modules
        before = sum(len(each.names) for each in by_stem.values())
        for path, finder in finders.items():
            for local, (module, name) in finder.imported.items():
                level = by_stem.get(module, Servers()).names.get(name)
                if level is not None:
                    finder.servers.names.setdefault(local, level)
                    stem = path.removesuffix(".py").rpartition("/")[2]
                    by_stem.setdefault(stem, Servers()).names.setdefault(local, level)
        if before == sum(len(each.names) for each in by_stem.values()):
            break
    return {path: finder.servers for path, finder in finders.items()}
