"""The lists of `mcpgen list`: revisions with their contents, extensions, features, modules."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path

from mcpgen import schema
from mcpgen.console import Console, count_of
from mcpgen.errors import UsageError
from mcpgen.model import methods
from mcpgen.model.feature_table import FEATURES, Feature
from mcpgen.model.methods import Methods
from mcpgen.model.name import Role, name_types
from mcpgen.model.normalize import normalize
from mcpgen.package import manifest
from mcpgen.render import closure
from mcpgen.schema import facts, revision_facts, shipped_extensions

_HEADS = ("revision", "status", "lifecycle", "transports", "client sends", "server sends", "errata")
_EXTENSION_HEADS = ("name", "identifier", "status", "version")
_FEATURE_HEADS = ("feature", "by default", "needs", "brings")


@dataclass(frozen=True)
class _Counts:
    """The number of methods that one side may send."""

    requests: int
    notifications: int

    def __str__(self) -> str:
        requests = count_of(self.requests, "request")
        return f"{requests}, {count_of(self.notifications, 'notification')}"


@dataclass(frozen=True)
class _Row:
    """One revision, in the order of the table's columns."""

    revision: str
    status: str
    lifecycle: str
    transports: tuple[str, ...]
    client_sends: _Counts
    server_sends: _Counts
    errata: int

    def cells(self) -> tuple[str, ...]:
        """The columns of the table."""
        return (
            self.revision,
            self.status,
            self.lifecycle,
            ", ".join(self.transports),
            str(self.client_sends),
            str(self.server_sends),
            str(self.errata),
        )


def list_modules(console: Console, directory: Path) -> None:
    """List the modules of a package by folder, each with its lines and its first importer.

    Raises:
        UsageError: There is no package; or a module is not UTF-8, or imports a missing module.
    """
    if not (directory / manifest.NAME).is_file():
        raise UsageError(f"{directory}: expected a package of mcpgen, got no {manifest.NAME} in it")
    modules = (path for path in directory.rglob("*.py*") if path.suffix in (".py", ".pyi"))
    try:
        files = {
            path.relative_to(directory).as_posix(): path.read_text("utf-8")
            for path in sorted(modules, key=lambda path: (path.parent, path.name))
        }
        importers = closure.importers(files)
    except (LookupError, SyntaxError, UnicodeError) as error:
        raise UsageError(f"{directory}: {error}") from None
    lines = {path: text.count("\n") for path, text in files.items()}
    listed = [{"module": path, "lines": lines[path], "by": importers[path]} for path in files]
    console.record({"modules": listed})
    rows: list[tuple[str, str, str]] = []
    for room, members in groupby(files, key=lambda path: path.rpartition("/")[0]):
        paths = [*members]
        total = sum(lines[path] for path in paths)
        rows.append((f"{room or '.'}/", str(total), count_of(len(paths), "module")))
        rows += [(f"  {path}", str(lines[path]), importers[path]) for path in paths]
    rows.append(("all", str(sum(lines.values())), count_of(len(files), "module")))
    console.table(("module", "lines", "imported by"), rows)


def list_revisions(console: Console) -> None:
    """List the revisions with their contents, the extensions that have a name, and the features."""
    rows = [_row(entry) for entry in schema.revisions()]
    console.table(_HEADS, [row.cells() for row in rows])
    console.text("")
    extensions = [
        {key: value for key, value in asdict(each).items() if key in _EXTENSION_HEADS}
        for each in shipped_extensions.entries()
    ]
    console.table(_EXTENSION_HEADS, [tuple(each.values()) for each in extensions])
    console.text("")
    console.table(_FEATURE_HEADS, [_feature_cells(each) for each in FEATURES])
    features = [
        {"name": each.name, "default": each.is_default, "brings": list(each.brings)}
        for each in FEATURES
    ]
    listed = [asdict(row) for row in rows]
    console.record({"revisions": listed, "extensions": extensions, "features": features})


def _feature_cells(feature: Feature) -> tuple[str, ...]:
    """The columns of the table of features."""
    default = "yes" if feature.is_default else "no"
    needs = ", ".join(sorted(feature.parts)) or "client or server"
    return feature.name, default, needs, ", ".join(feature.brings)


def _row(entry: schema.RevisionEntry) -> _Row:
    loaded, known = schema.load(entry.name), facts.load(entry.name)
    named = name_types(normalize(loaded, known), known)
    derived = methods.derive(named.types, named.messages, known)
    return _Row(
        entry.name,
        entry.status,
        "handshake" if derived.handshake else "per request",
        _transports(known.transports),
        _counts(derived, "client"),
        _counts(derived, "server"),
        len(loaded.errata),
    )


def _transports(transports: revision_facts.Transports) -> tuple[str, ...]:
    names = {
        "stdio": transports.stdio,
        "HTTP+SSE": transports.http_sse,
        f"HTTP ({transports.streamable_http})": transports.streamable_http is not None,
    }
    return tuple(name for name, has in names.items() if has)


def _counts(derived: Methods, sender: Role) -> _Counts:
    return _Counts(
        requests=len(derived.of(sender, "request")),
        notifications=len(derived.of(sender, "notification")),
    )
