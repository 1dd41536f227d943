"""The modules that a package needs: its entry modules, and the modules that they import.

All imports of a module count: at its top, within functions, and under `TYPE_CHECKING`, which type
checkers of users read.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

_INIT = "__init__.py"

_FOREIGN = re.compile(
    r"^( *)(?:import (\w+)(?:[.\w]*)(?: as \w+)?$|from (\w+)[\w.]* import )"
    r"|import_module\(\"(\w+)",
    re.MULTILINE,
)
"""An import of another distribution: a statement that begins its line, or a call by its name."""
_RELATIVE = re.compile(r"^[ \t]*(from[ \t]+\.[^\n(]*(?:\([^)]*\))?)", re.MULTILINE)
"""A relative import as templates write it: a statement that begins its line."""
_OVER_HTTP = ("uvicorn", "aiohttp", "httpx2")
_DISTRIBUTIONS = {
    "dotenv": "python-dotenv",
    "opentelemetry": "opentelemetry-api",
    "re2": "google-re2",
    "ruamel": "ruamel.yaml",
    "yaml": "pyyaml",
}
"""The distributions of modules that have another name."""
_OPTIONAL = frozenset({"google-re2", "rich", "ruamel.yaml", "tomlkit"})
"""Distributions without which a feature does the same with less comfort."""
_OF_PYDANTIC = frozenset({"pydantic_core", "typing_extensions"})  # pydantic depends on them
_BROUGHT = frozenset(
    {
        "argcomplete",  # by the user's shell, which asks for words
        *("attrs", "jsonschema_specifications", "referencing"),  # by jsonschema
        "httpcore2",  # by httpx2
        "pydantic_core",  # by pydantic
        "typing_extensions",  # by type checkers
        *("mcpgen", "pytest", "trio"),  # where the user's program or tests run on them
    }
)
"""Modules within functions that come with a distribution, or with the user's program."""


def needed_files(
    entries: Iterable[str],
    available: Collection[str],
    text_of: Callable[[str], str],
    late: Collection[str] = (),
) -> dict[str, str]:
    """The text of each needed file by its path, the package's own `__init__.py` left out.

    Args:
        entries: Paths of the entry files.
        available: Paths of all files there are.
        text_of: Returns the text of a file; called once for each needed file.
        late: Paths of files whose text takes time to make: they are read after all others.

    Raises:
        LookupError: A module imports one of the package's that is not available.
    """
    texts: dict[str, str] = {}
    waiting = list(entries)
    while waiting:
        path = next((path for path in reversed(waiting) if path not in late), waiting[-1])
        waiting.remove(path)
        if path in texts or path == _INIT:
            continue
        texts[path] = text_of(path)
        if f"{path}i" in available:  # its stub
            waiting.append(f"{path}i")
        if path.endswith((".py", ".pyi")):
            waiting += _packages(path)
            waiting += imported_files(path, texts[path], available)
    return texts


def importers(files: Mapping[str, str]) -> dict[str, str]:
    """The module that imports each module of a package, on the shortest path from the root.

    Args:
        files: The modules by their paths, the root module and its stub among them.

    Returns:
        The path of the importer by the path of the module; empty for modules that are loaded by
        name, and for `__init__.py`.

    Raises:
        LookupError: A module imports one that the package lacks.
    """
    targets = {path: [*imported_files(path, text, files)] for path, text in files.items()}
    by_name = files.keys() - {target for each in targets.values() for target in each}
    importer: dict[str, str] = {}
    for begin in ("__init__.pyi", *sorted(by_name), *sorted(files)):
        waiting = deque([begin] if begin in files and begin not in importer else [])
        importer.update(dict.fromkeys(waiting, ""))
        while waiting:
            path = waiting.popleft()
            for target in targets[path]:
                if target not in importer:
                    importer[target] = "" if target.endswith(_INIT) else path
                    waiting.append(target)
    return importer


def _packages(path: str) -> Iterator[str]:
    """The `__init__.py` of each folder that a file lies in."""
    for folder in accumulate(path.split("/")[:-1], "{}/{}".format):
        yield f"{folder}/{_INIT}"


def imported_files(path: str, text: str, available: Collection[str]) -> Iterator[str]:
    """Paths of the files that a module imports from its own package.

    Raises:
        LookupError: One of them is not available.
    """
    folder = path.split("/")[:-1]
    for node in _imports(text, path):
        base = [*folder[: len(folder) + 1 - node.level], *(node.module or "").split(".")]
        base = [part for part in base if part]
        own = _file(base, available)
        for name in node.names:
            module = _file([*base, name.name], available)
            if module is not None:
                yield module
            elif own is not None:
                yield own
            elif base:
                raise LookupError(f"{path}:{node.lineno}: there is no module {'.'.join(base)}")


def _file(module: list[str], available: Collection[str]) -> str | None:
    """The file of a module, if there is one."""
    stem = "/".join(module)
    candidates = (f"{stem}.py", f"{stem}/{_INIT}") if stem else (_INIT,)
    return next((path for path in candidates if path in available), None)


@lru_cache(maxsize=512)  # a process reads the same copied modules again
def _imports(text: str, path: str) -> tuple[ast.ImportFrom, ...]:
    """The relative imports of a module: only these statements of it are parsed."""
    relative: list[ast.ImportFrom] = []
    for match in _RELATIVE.finditer(text):
        [node] = ast.parse(match[1], path).body
        if isinstance(node, ast.ImportFrom):
            node.lineno = text.count("\n", 0, match.start()) + 1
            relative.append(node)
    return tuple(relative)


@dataclass(frozen=True)
class Dependencies:
    """The distributions that the modules of a package import.

    Attributes:
        needed: For every use, the most basic first, then those of features.
        over_http: For HTTP only.
        optional: For the comfort of features.
    """

    needed: tuple[str, ...] = ()
    over_http: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


def dependencies(files: Mapping[str, str], package: str) -> Dependencies:
    """The distributions that modules import, at their top, within functions and by name.

    Args:
        files: The modules by their paths.
        package: The import name of their package, which their examples import.
    """
    own = {package.partition(".")[0], *sys.stdlib_module_names}
    at_top: set[str] = set()
    within: set[str] = set()
    for path, text in files.items():
        if path.endswith(".py"):
            for is_inner, name in _foreign(text):
                (within if is_inner else at_top).add(name)
    at_top -= own
    if "pydantic" in at_top:
        at_top -= _OF_PYDANTIC
    within -= at_top | own | _BROUGHT
    distributions = {_DISTRIBUTIONS.get(name, name) for name in within}
    return Dependencies(
        (*sorted(at_top, reverse=True), *sorted(distributions - _OPTIONAL - {*_OVER_HTTP})),
        tuple(sorted(distributions.intersection(_OVER_HTTP))),
        tuple(sorted(distributions & _OPTIONAL)),
    )


@lru_cache(maxsize=512)  # as for `_imports`
def _foreign(text: str) -> tuple[tuple[bool, str], ...]:
    """The distributions that a module imports: whether within a function or by name, and which."""
    rows = _FOREIGN.findall(text)
    return tuple(
        (bool(indent or by_name), whole or part or by_name) for indent, whole, part, by_name in rows
    )
