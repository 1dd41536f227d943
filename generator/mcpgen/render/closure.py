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
from functools import lru_cache
from itertools import accumulate

_INIT = "__init__.py"

_FOREIGN = re.compile(r"^( *)(?:import (\w+)$|from (\w+)[\w.]* import )", re.MULTILINE)
_RELATIVE = re.compile(r"^[ \t]*(from[ \t]+\.[^\n(]*(?:\([^)]*\))?)", re.MULTILINE)
"""A relative import as templates write it: a statement that begins its line."""
_OVER_HTTP = ("uvicorn", "aiohttp", "httpx2")
_OF_PYDANTIC = frozenset({"pydantic_core", "typing_extensions"})  # pydantic depends on them
_PROTECTION, _FOR_SOME = "server/auth/", {"aiohttp", "httpx2"}  # only protected servers fetch


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
        waiting += _packages(path)
        if path.endswith(".py"):
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


def dependencies(files: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The distributions that modules import: those for every use, and those for HTTP only.

    Other imports within functions are left out: an error names them to the users who need them.
    """
    always: set[str] = set()
    over_http: set[str] = set()
    for path, text in files.items():
        for indent, whole, part in _FOREIGN.findall(text) if path.endswith(".py") else ():
            name = whole or part
            if indent and name in _OVER_HTTP:
                over_http.update({name} - (_FOR_SOME if path.startswith(_PROTECTION) else set()))
            elif not indent and name not in sys.stdlib_module_names:
                always.add(name)
    if "pydantic" in always:
        always -= _OF_PYDANTIC
    return sorted(always, reverse=True), sorted(over_http)
