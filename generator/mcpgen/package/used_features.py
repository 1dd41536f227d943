"""The features of a package that a program uses, read from the program's source text.

Nothing is imported or run. A variable has the class that an import, an assignment, an annotation or
a `with` gives it, also across the modules of the program. A member counts if that class has it by a
feature. Where the class is unknown, a call of a member that features add counts too: a feature too
many costs lines, one too few breaks the program. Text that is put together at run time is not seen,
such as `getattr(server, name)` or keywords from a dict.
"""

from __future__ import annotations

import ast
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from mcpgen.errors import UsageError, safe_text
from mcpgen.model import exports
from mcpgen.model.feature_table import FEATURES
from mcpgen.model.parts import NONE, USED, brought_features
from mcpgen.package import manifest
from mcpgen.package.program_names import (
    CLASSES,
    FOREIGN,
    Binding,
    Exported,
    Imported,
    Instance,
    Module,
    Program,
    Scope,
    UserClass,
    Value,
    bind,
    function_scope,
    value_of,
)

T = TypeVar("T")

MAX_FILES = 20_000
MAX_BYTES = 4 * 1024 * 1024
"""Bounds of what is read: files, and bytes of one file; larger ones are left out."""

_TEXTS = frozenset({".cfg", ".json", ".md", ".sh", ".toml", ".yaml", ".yml"})
_NAMED_TEXTS = frozenset({"Containerfile", "Dockerfile", "Makefile", "Procfile", "justfile"})
"""Files that may run commands of the package."""

_SKIPPED = frozenset({"__pycache__", "build", "dist", "node_modules", "site-packages"})


@dataclass(frozen=True)
class Use:
    """One place where a program uses a feature.

    Attributes:
        feature: The feature.
        path: The file, as it was given.
        line: Number of the line, from 1.
        code: What is used there, such as `server.mount` or `Server(handlers=)`.
    """

    feature: str
    path: str
    line: int
    code: str

    @property
    def place(self) -> str:
        """The file and the line."""
        return f"{safe_text(self.path)}:{self.line}"

    def __str__(self) -> str:
        return f"{self.feature}: {self.place} uses {self.code}"


def chosen_words(words: Iterable[str], uses: Iterable[Use]) -> tuple[str, ...]:
    """The words of `--features` with the used features in the place of `used`."""
    others = [word for word in words if word != USED]
    used = {use.feature for use in uses}
    return (NONE, *(each.name for each in FEATURES if each.name in used), *others)


def find_uses(sources: Iterable[Path], package: Path, name: str) -> tuple[Use, ...]:
    """The uses of features of a package in files and folders, in the order of files and lines.

    Folders that are hidden, hold a virtual environment or another generated package, or are called
    `build`, `dist`, `node_modules` or `site-packages` are left out.

    Args:
        sources: Python files, and folders with Python files and texts that run commands.
        package: The directory of the package, which is left out.
        name: Its import name.

    Raises:
        UsageError: A source does not exist or cannot be read, or there are too many files.
    """
    texts: dict[str, str] = {}
    for path in program_files(sources, package.resolve()):
        if path.stat().st_size <= MAX_BYTES:
            texts[path.as_posix()] = path.read_text(encoding="utf-8", errors="replace")
    return uses_in(texts, name)


def program_files(sources: Iterable[Path], package: Path) -> Iterator[Path]:
    """Yield the files of a program in the order of their names; see `find_uses`.

    Args:
        sources: Its files and folders.
        package: The resolved directory of the package, which is left out.

    Raises:
        UsageError: A source does not exist, or there are too many files.
    """
    count = 0
    for source in sources:
        if source.is_file():
            yield source
            continue
        if not source.is_dir():
            raise UsageError(
                f"sources: expected a folder or a file, got {safe_text(str(source))},"
                " which is not there"
            )
        for place, folders, names in os.walk(source):
            here = Path(place)
            folders[:] = sorted(each for each in folders if _is_searched(here / each, package))
            for each in sorted(names):
                path = here / each
                if path.suffix == ".py" or path.suffix in _TEXTS or each in _NAMED_TEXTS:
                    count += 1
                    if count > MAX_FILES:
                        raise UsageError(
                            f"sources: expected at most {MAX_FILES} files, got more below"
                            f" {safe_text(str(source))}: name the folders of the program"
                        )
                    if path.is_file():
                        yield path


def _is_searched(folder: Path, package: Path) -> bool:
    """Whether a folder may hold code of the program."""
    if folder.name.startswith(".") or folder.name in _SKIPPED or folder.is_symlink():
        return False
    other = (folder / manifest.NAME).is_file() or (folder / "pyvenv.cfg").is_file()
    return not other and folder.resolve() != package


def uses_in(texts: Mapping[str, str], package: str) -> tuple[Use, ...]:
    """The uses of features in texts by path; a text that is no Python counts for commands alone."""
    program = Program(package)
    uses: set[Use] = set()
    for path, text in texts.items():
        uses.update(_commands(path, text, package))
        if path.endswith(".py"):
            program.add(path, text)
    for module in program.modules:
        uses.update(_Reader(module).uses())
    needed = _without_alternatives(uses)
    return tuple(sorted(needed, key=lambda use: (use.path, use.line, use.feature, use.code)))


def _without_alternatives(uses: Iterable[Use]) -> Iterator[Use]:
    """Yield the uses, and of an option that several features have, one that has to be chosen.

    That is the first of the features, unless others that have the option are used elsewhere, or
    features that bring these are.
    """
    places: dict[tuple[str, int, str], set[str]] = defaultdict(set)
    for use in uses:
        places[use.path, use.line, use.code].add(use.feature)
    used = {feature for own in places.values() if len(own) == 1 for feature in own}
    used |= brought_features(used)
    order = [each.name for each in FEATURES]
    for (path, line, code), features in places.items():
        if code.endswith("=)"):
            features = features & used or {min(features, key=order.index)}
        yield from (Use(feature, path, line, code) for feature in features)


def _commands(path: str, text: str, package: str) -> Iterator[Use]:
    """The commands of the package, and its environment variables, in the lines of a text."""
    between = r"[\s\"',]+"
    command = re.compile(rf"-m{between}{re.escape(package)}{between}([a-z][\w-]*)(.*)")
    for number, line in enumerate(text.splitlines(), 1):
        match = command.search(line)
        names: set[str] = set()
        if match is not None:
            options = re.findall(r"--[a-z-]+", match[2])
            names = {match[1], *(f"{match[1]} {option}" for option in options)}
        for feature in FEATURES:
            for each in feature.commands:
                if each in names:
                    yield Use(feature.name, path, number, f"python -m {package} {each}")
            for variable in feature.variables:
                if variable in line:
                    yield Use(feature.name, path, number, variable)


class _Reader:
    """Finds the uses in a module."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._uses: list[Use] = []
        self._waiting: list[tuple[ast.AST, Scope, UserClass | None]] = []

    def uses(self) -> list[Use]:
        """The uses of features in the module."""
        self._push(self._module.tree.body, self._module.scope, None)
        while self._waiting:  # expressions may be nested deeper than calls can be
            self._read(*self._waiting.pop())
        return self._uses

    def _push(self, nodes: Iterable[ast.AST], scope: Scope, owner: UserClass | None) -> None:
        self._waiting += ((node, scope, owner) for node in reversed([*nodes]))

    def _read(self, node: ast.AST, scope: Scope, owner: UserClass | None) -> None:
        """Read one node of a scope, and let those in it wait."""
        inner, here = scope, owner
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._push(node.decorator_list, scope, owner)
                for each in node.decorator_list:
                    self._count_member(each, scope, is_called=True)
                inner = function_scope(node, scope, owner)
            case ast.Lambda():
                inner = Scope(self._module, scope)
                for argument in node.args.args:
                    inner.bindings[argument.arg].append(Binding(inner))
            case ast.ClassDef():
                values = scope.bindings[node.name]
                classes = (each.result for each in values if isinstance(each.result, UserClass))
                here = next((each for each in classes if each.node is node), None)
                inner = Scope(self._module, scope)
                bind(node.body, inner)
            case ast.Attribute():
                self._count_member(node, scope, is_called=False)
            case ast.Call():
                self._count_member(node, scope, is_called=False)
                self._count_member(node.func, scope, is_called=True)
                self._count_options(node, scope, owner)
            case ast.Name(ctx=ast.Load()) if scope.takes_all:
                self._count_name(scope.lookup(node.id), node.lineno)
            case ast.ImportFrom():
                source = self._module.source_of(node)
                if self._module.program.is_package(source):
                    for alias in node.names:
                        self._count_name(Exported(alias.name), node.lineno)
            case _:
                pass
        self._push(ast.iter_child_nodes(node), inner, here)

    def _count_name(self, value: Value, line: int) -> None:
        if isinstance(value, Exported):
            for feature in _OF_NAMES.get(value.name, ()):
                self._add(feature, line, value.name)

    def _count_member(self, node: ast.expr, scope: Scope, *, is_called: bool) -> None:
        match node:
            case ast.Attribute(value=inner, attr=name):
                owner = value_of(inner, scope)
            case ast.Call(func=ast.Name(id="getattr"), args=[inner, ast.Constant(str(name)), *_]):
                owner = value_of(inner, scope)
            case _:
                return
        if isinstance(owner, Imported) and self._module.program.is_package(owner.name):
            self._count_name(Exported(name), node.lineno)
        if isinstance(owner, Exported):
            owner = Instance(CLASSES.get(owner.name, ""))
        for kind, feature in _MEMBERS.get(name, ()):
            is_unknown = owner is None and (is_called or "_" in name) and name not in _OF_CLIENTS
            if is_unknown or owner == Instance(kind):
                self._add(feature, node.lineno, f"{kind}.{name}")

    def _count_options(self, node: ast.Call, scope: Scope, owner: UserClass | None) -> None:
        function = value_of(node.func, scope)
        match node.func:
            case _ if isinstance(function, Exported):
                name = function.name.replace("_sync", "")
            case _ if isinstance(function, UserClass):
                name = _base_of(function)
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr="__init__"):
                name = "" if owner is None else _base_of(owner)
            case ast.Attribute(value=inner, attr=name) if value_of(inner, scope) is not FOREIGN:
                pass
            case _:
                return
        for keyword in node.keywords:
            is_off = isinstance(keyword.value, ast.Constant) and not keyword.value.value
            for feature in () if is_off else _OPTIONS.get(f"{name}.{keyword.arg}", ()):
                self._add(feature, node.lineno, f"{name}({keyword.arg}=)")
        if name == "connect" and node.args and _is_configuration(node.args[0]):
            self._add("groups", node.lineno, "connect with a configuration of servers")

    def _add(self, feature: str, line: int, code: str) -> None:
        self._uses.append(Use(feature, self._module.path, line, code))


def _base_of(kind: UserClass) -> str:
    """The class of the package that a class is derived from; empty if there is none."""
    made = kind.instance()
    return made.of if isinstance(made, Instance) else ""


def _is_configuration(node: ast.expr) -> bool:
    """Whether an argument is a configuration of servers: a dict, or the path of a JSON file."""
    texts = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant))
    return isinstance(node, ast.Dict) or any(
        isinstance(text, str) and text.endswith(".json") for text in texts
    )


def _by_key(rows: Iterable[tuple[str, T]]) -> dict[str, tuple[T, ...]]:
    table: dict[str, list[T]] = defaultdict(list)
    for key, value in rows:
        table[key].append(value)
    return {key: tuple(values) for key, values in table.items()}


def _names_of_features() -> Iterator[tuple[str, str]]:
    """Yield the public names that need features, each with one of these."""
    features = {each.name for each in FEATURES}
    parts = [
        (name, features.intersection(part.split("+")))
        for row in exports.EXPORTS
        for name in row.names
        for part in row.parts
    ]
    always = {name for name, own in parts if not own}
    needed: dict[str, set[str]] = defaultdict(set)
    for name, own in parts:
        if name not in always:
            needed[name] |= own
    for name, own in needed.items():
        yield from ((name, each) for each in sorted(own))


_OF_NAMES = _by_key(_names_of_features())
_MEMBERS = _by_key(
    (member, (kind, each.name))
    for each in FEATURES
    for kind, members in (
        ("Server", each.server_members),
        ("Client", each.client_members),
        ("Context", each.context_members),
    )
    for member in members
)
_OPTIONS = _by_key((option, each.name) for each in FEATURES for option in each.options)
_OF_CLIENTS = frozenset(next(each.server_members for each in FEATURES if each.name == "direct"))
"""Members that clients have without a feature."""
