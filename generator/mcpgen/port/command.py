"""`mcpgen port`: read a program, change it, show or write the result."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from mcpgen.console import Console
from mcpgen.errors import UsageError
from mcpgen.model.feature_table import FEATURES
from mcpgen.model.parts import USED
from mcpgen.package import used_features
from mcpgen.package.used_features import Use
from mcpgen.port import alternatives
from mcpgen.port.imports import change_imports
from mcpgen.port.rewriting import rewrite
from mcpgen.port.servers import Level, servers_of
from mcpgen.port.unported import Unported


@dataclass(frozen=True)
class Ported:
    """A program that was ported.

    Attributes:
        sources: Its files and folders.
        files: The new bytes of the files that change, by path.
        before: Their old bytes.
        findings: What is left to a person, in the order of files and lines.
        uses: The features that the program uses.
    """

    sources: tuple[Path, ...]
    files: Mapping[Path, bytes]
    before: Mapping[Path, bytes]
    findings: tuple[Unported, ...]
    uses: tuple[Use, ...]

    def features(self) -> tuple[str, ...]:
        """The features that the program uses."""
        used = {each.feature for each in self.uses}
        return tuple(each.name for each in FEATURES if each.name in used)

    def record(self) -> dict[str, Any]:
        """The result as JSON data."""
        return {
            "files": [path.as_posix() for path in self.files],
            "features": list(self.features()),
            "left": [asdict(each) for each in self.findings],
            "diff": self.diff(),
        }

    def diff(self) -> str:
        """A unified diff of all files."""
        return "".join(
            _diff(path.as_posix(), self.before[path], text) for path, text in self.files.items()
        )


def port(sources: Iterable[Path], package: Path, fastmcp: int) -> Ported:
    """Port the Python files in files and folders.

    Args:
        sources: The files and the folders.
        package: The directory of the generated package; its name is the import name.
        fastmcp: The major version of FastMCP that the program was written for.

    Raises:
        UsageError: A source does not exist.
    """
    named = tuple(sources)
    before = _read(named, package)
    findings: list[Unported] = []
    wrappers: dict[str, MetadataWrapper] = {}
    paths: dict[str, Path] = {}
    for path, content in before.items():
        name = path.as_posix()
        if not any(root.encode() in content for root in alternatives.ROOTS):
            continue
        try:
            module = cst.parse_module(content)
        except cst.ParserSyntaxError as error:
            findings.append(Unported(name, error.raw_line, "syntax error", "left as it is"))
            continue
        except (UnicodeDecodeError, LookupError, SyntaxError) as error:
            findings.append(Unported(name, 1, f"encoding: {error}", "left as it is"))
            continue
        wrappers[name] = MetadataWrapper(module)
        paths[name] = path
    servers = servers_of(wrappers)
    dialects = {
        Level.OFFICIAL: "mcp-1",
        Level.OFFICIAL_2: "mcp-2",
        Level.FASTMCP: f"fastmcp-{fastmcp}",
    }
    files: dict[Path, bytes] = {}
    for name, wrapper in wrappers.items():
        changed = rewrite(name, wrapper, servers[name], dialects)
        module = change_imports(name, changed, package.name, servers[name])
        findings += changed.findings
        if (content := module.bytes) != before[paths[name]]:
            files[paths[name]] = content
    texts = {
        path.as_posix(): files.get(path, content).decode("utf-8", "replace")
        for path, content in before.items()
    }
    uses = used_features.uses_in(texts, package.name)
    return Ported(named, files, before, tuple(sorted(findings)), uses)


def _read(sources: Iterable[Path], package: Path) -> dict[Path, bytes]:
    """The Python files in files and folders, without links and the package itself."""
    files: dict[Path, bytes] = {}
    for path in used_features.program_files(sources, package.resolve()):
        is_read = path.suffix == ".py" and not path.is_symlink()
        if is_read and path.stat().st_size <= used_features.MAX_BYTES:
            files[path] = path.read_bytes()
    if not files:
        raise UsageError("expected a Python file or a folder with some, got none")
    return files


def _diff(name: str, old: bytes, new: bytes) -> str:
    before, after = (
        each.decode("utf-8", "replace").splitlines(keepends=True) for each in (old, new)
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n"
        for line in difflib.unified_diff(before, after, fromfile=name, tofile=name)
    )


def default_package(source: Path) -> Path:
    """The directory of the package of a program: beside its outermost package, or beside its file.

    Args:
        source: The first file or folder of the program.
    """
    folder = source if source.is_dir() else source.parent
    while (folder / "__init__.py").is_file():
        folder = folder.resolve().parent
    return folder / "my_protocol"


_FASTMCP_VERSIONS = (4, 3, 2)


def fastmcp_version(source: Path) -> int:
    """The newest major version of FastMCP that the project around a file or a folder allows.

    A project that names none has the newest.
    """
    place = source.resolve()
    for folder in (place, *place.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            project = tomllib.loads(file.read_text(encoding="utf-8")).get("project", {})
            for text in project.get("dependencies", ()):
                requirement = Requirement(text)
                if canonicalize_name(requirement.name) in ("fastmcp", "fastmcp-slim"):
                    allowed = requirement.specifier
                    versions = (each for each in _FASTMCP_VERSIONS if _allows(allowed, each))
                    return next(versions, _FASTMCP_VERSIONS[0])
            break
    return _FASTMCP_VERSIONS[0]


def _allows(specifier: SpecifierSet, major: int) -> bool:
    """Whether a version of a major one is allowed, the last ones of its minor versions included."""
    return any(specifier.contains(f"{major}.{minor}.99") for minor in range(100)) or any(
        Version(each.version).major == major
        for each in specifier
        if each.operator == "==" and not each.version.endswith("*")
    )


def write(
    console: Console, ported: Ported, package: Path, revisions: tuple[str, ...], *, force: bool
) -> None:
    """Write the changed files, and generate the package with the features that they use.

    Raises:
        McpgenError: The directory of the package can't be written.
    """
    from mcpgen.package import commands

    for path, content in ported.files.items():
        path.write_bytes(content)
    options = commands.PackageOptions(revisions=revisions, features=(USED,), sources=ported.sources)
    request = commands.new_request(options, package, errata=True)
    if console.as_json:  # the record of the port is the one value
        console = Console(quiet=True)
    commands.generate(console, request, package, force=force)
