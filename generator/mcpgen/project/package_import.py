"""Import generated packages from memory.

To compile its modules takes most of the time of a command that talks to a server. So their byte
code is kept in the cache, in the form that Python gives it in files.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import logging
import marshal
import secrets
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder, SourceLoader
from importlib.machinery import ModuleSpec
from importlib.resources.abc import ResourceReader
from io import BytesIO
from types import ModuleType
from typing import Any, NoReturn

from mcpgen import cache

_KIND = "bytecode"
_ROOT = "mcpgen_peer"
_INIT = "/__init__.py"


@contextmanager
def import_package(files: Mapping[str, str]) -> Generator[Any]:
    """Import a generated package under a name of its own.

    Args:
        files: Text by path within the package; imports within it are relative.

    Yields:
        The package. At the end of the block, it can import nothing more.
    """
    name = f"{_ROOT}_{secrets.token_hex(4)}"
    loader = _Loader(name, files)
    finder = _Finder(loader)
    sys.meta_path.insert(0, finder)
    logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        yield importlib.import_module(name)
    finally:
        sys.meta_path.remove(finder)
        for module in [each for each in sys.modules if each.partition(".")[0] == name]:
            del sys.modules[module]
        loader.keep()


class _Loader(SourceLoader):
    """Loads the modules of a package.

    Their paths do not have the name of the package, which differs in each process.
    """

    def __init__(self, name: str, files: Mapping[str, str]) -> None:
        self._name = name
        self._sources = {f"{_ROOT}/{path}": text.encode() for path, text in files.items()}
        self._key = hashlib.sha256(json.dumps([sys.version, dict(files)]).encode()).hexdigest()
        kept = cache.read(_KIND, self._key)
        self._compiled: dict[str, bytes] = {} if kept is None else marshal.loads(kept)
        self._has_new = False

    def place_of(self, fullname: str) -> str | None:
        """The path of a module, if the package has it."""
        first, *rest = fullname.split(".")
        stem = "/".join((_ROOT, *rest))
        places = (f"{stem}{_INIT}", f"{stem}.py") if first == self._name else ()
        return next((place for place in places if place in self._sources), None)

    def get_filename(self, fullname: str) -> str:
        """The path of a module."""
        place = self.place_of(fullname)
        if place is None:
            raise ImportError(fullname)
        return place

    def get_data(self, path: str) -> bytes:
        """The source of a module, or its byte code."""
        try:
            return self._sources[path] if path in self._sources else self._compiled[path]
        except KeyError:
            raise FileNotFoundError(path) from None

    def path_stats(self, path: str) -> Mapping[str, int]:
        """The state of a source, which never changes."""
        return {"mtime": 0, "size": len(self._sources[path])}

    def set_data(self, path: str, data: bytes) -> None:
        """Take the byte code of a module."""
        self._compiled[path] = bytes(data)
        self._has_new = True

    def get_resource_reader(self, fullname: str) -> ResourceReader:
        """The reader of the files beside the modules of a package within the package."""
        folder = self.get_filename(fullname).removesuffix(_INIT)
        rows = ((path.rpartition("/"), data) for path, data in self._sources.items())
        return _Resources({name: data for (place, _, name), data in rows if place == folder})

    def keep(self) -> None:
        """Store the byte code in the cache, if a module was compiled."""
        if self._has_new:
            cache.write(_KIND, self._key, marshal.dumps(self._compiled))


class _Finder(MetaPathFinder):
    """Finds the modules of a loader."""

    def __init__(self, loader: _Loader) -> None:
        self._loader = loader

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The specification of a module of the package."""
        place = self._loader.place_of(fullname)
        if place is None:
            return None
        spec = ModuleSpec(fullname, self._loader, origin=place)
        if place.endswith(_INIT):
            spec.submodule_search_locations = [place.removesuffix(_INIT)]
        spec.has_location = True  # as `__file__`
        return spec


class _Resources(ResourceReader):
    """The files of one folder, by name."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files

    def open_resource(self, resource: str) -> BytesIO:
        """The content of a file."""
        return BytesIO(self._files[resource])

    def resource_path(self, resource: str) -> NoReturn:
        """No file is on disk."""
        raise FileNotFoundError(resource)

    def is_resource(self, path: str) -> bool:
        """Whether there is a file of a name."""
        return path in self._files

    def contents(self) -> Iterator[str]:
        """The names of the files."""
        return iter(self._files)
