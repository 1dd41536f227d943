"""The servers of a program: the names that its modules bind to servers of another SDK.

Nothing is imported or run. A name is a server if it is bound to a call of the class of servers, if
its annotation is that class, or if another module of the program binds it so and it is imported
from there.
"""

from __future__ import annotations

from collections import defaultdict
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
        classes: Kinds of subclasses of the class of servers, by their names.
        constructed: Those of these classes that have a constructor of their own.
        media: Names that are bound to images and audio.
    """

    names: dict[str, Level] = field(default_factory=dict[str, Level])
    makers: dict[str, Level] = field(default_factory=dict[str, Level])
    classes: dict[str, Level] = field(default_factory=dict[str, Level])
    constructed: set[str] = field(default_factory=set[str])
    media: set[str] = field(default_factory=set[str])


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


def is_medium(name: str | None) -> bool:
    """Whether a qualified name is the class of images or of audio of another SDK."""
    target = None if name is None else alternatives.target(name)
    return target is not None and target.name in ("Audio", "Image")


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

    def __init__(self, servers: Servers) -> None:
        super().__init__()
        self.servers = servers
        self.imported: dict[str, tuple[str, str]] = {}

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        levels = [self._class(each.value) for each in node.bases]
        level = next((each for each in levels if each is not None), None)
        if level is None:
            return
        self.servers.classes[node.name.value] = level
        if any(
            isinstance(each, cst.FunctionDef) and each.name.value == "__init__"
            for each in node.body.body
        ):
            self.servers.constructed.add(node.name.value)

    def visit_Assign(self, node: cst.Assign) -> None:
        level = self._level(node.value)
        is_media = isinstance(node.value, cst.Call) and is_medium(sdk_name(self, node.value.func))
        for each in node.targets:
            name = dotted_name(each.target)
            if level is not None and name:
                self.servers.names[name] = level
            if is_media and name:
                self.servers.media.add(name)

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
            name = node.func.value
            level = self.servers.makers.get(name) or self.servers.classes.get(name)
        return level

    def _class(self, node: cst.BaseExpression) -> Level | None:
        kind = annotated_class(node)
        return level_of(sdk_name(self, kind)) or self.servers.classes.get(dotted_name(kind))


def servers_of(modules: Mapping[str, cst.MetadataWrapper]) -> dict[str, Servers]:
    """The servers of each module of a program, by the path of the module.

    Imports are followed by the last part of the name of a module.
    """
    whole = {path: Servers() for path in modules}
    before = -1
    while before < (before := sum(map(_count, whole.values()))):  # names pass through modules
        by_stem: defaultdict[str, Servers] = defaultdict(Servers)
        for path, servers in whole.items():
            module = by_stem[_stem(path)]
            module.names |= servers.names
            module.makers |= servers.makers
            module.classes |= servers.classes
            module.constructed |= servers.constructed
        for path, wrapper in modules.items():
            servers = whole[path]
            finder = _Finder(servers)
            wrapper.visit(finder)
            for local, (stem, name) in finder.imported.items():
                _import(servers, local, by_stem[stem], name)
    return whole


def _count(servers: Servers) -> int:
    return len(servers.names) + len(servers.makers) + len(servers.classes)


def _stem(path: str) -> str:
    """The last part of the name of a module."""
    return path.removesuffix("/__init__.py").removesuffix(".py").rpartition("/")[2]


def _import(servers: Servers, local: str, module: Servers, name: str) -> None:
    """Bind what another module binds to a name."""
    if name in module.names:
        servers.names.setdefault(local, module.names[name])
    if name in module.makers:
        servers.makers.setdefault(local, module.makers[name])
    if name in module.classes:
        servers.classes.setdefault(local, module.classes[name])
        if name in module.constructed:
            servers.constructed.add(local)
