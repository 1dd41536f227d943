"""A project of a server or a client: its name, its choices, and the text of the user's files.

The templates lie in `templates/project`; `_FILES` maps them to the files of the project. The
generated package is a subpackage, `src/NAME/protocol`.
"""

from __future__ import annotations

import json
import keyword
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from mcpgen import paths
from mcpgen.errors import UsageError, safe_text
from mcpgen.json_types import Json
from mcpgen.literals import Code
from mcpgen.package.build_request import RUNTIME
from mcpgen.project.mirror import Mirror
from mcpgen.render import templates
from mcpgen.render.formatting import format_modules
from mcpgen.toml_records import toml_value

Side: TypeAlias = Literal["server", "client"]

PROTOCOL, MIRROR = "protocol", "mirror"
"""Names of the generated package and of the mirror within the project's own package."""

CONTRACT = "server.contract.json"
"""The contract of a new server."""

REQUIREMENTS: Mapping[str, str] = {
    "aiohttp": "aiohttp>=3.14.3",
    "anyio": "anyio>=4.11",
    "cryptography": "cryptography>=48.0.1",
    "filelock": "filelock>=4.2",
    "httpx2": "httpx2>=2.16",
    "joserfc": "joserfc>=1.8",
    "jsonschema": "jsonschema>=4.20",
    "keyring": "keyring>=25.6",
    "msgspec": "msgspec>=0.20",
    "opentelemetry": "opentelemetry-api>=1.45.2",
    "platformdirs": "platformdirs>=4.5",
    "rich": "rich>=13.7",
    "uritemplate": "uritemplate>=4.2",
    "uvicorn": "uvicorn>=0.54",
    "valkey": "valkey>=6.1",
    "watchfiles": "watchfiles>=1.1",
}
"""Requirements of generated packages, with the oldest tested version."""

TOOLS = ("mypy>=1.15", "pre-commit>=4.2", "pyright>=1.1.400", "pytest>=8.4", "ruff>=0.12")
"""The tools that test and check a project."""

_ALWAYS = ("anyio", "msgspec")
_OVER_HTTP: Mapping[Side, tuple[str, ...]] = {
    "server": ("uvicorn",),
    "client": ("httpx2",),
}
_RESERVED = frozenset({"tests", "mcp", "pytest", "mypy", "pyright", "ruff", "hatchling"})
"""Names of packages that a project is tested with, or could be confused with."""

_NAME = re.compile(r"[a-z](?:[a-z0-9]|[-_.](?=[a-z0-9])){0,59}")
_OWN_NAME = re.compile(r"\s*mcpgen\s*(?:[\[<>=!~;]|$)", re.IGNORECASE)
"""A requirement that pip takes from an index by the name of mcpgen."""
_SHARED = {
    "pyproject.toml": "pyproject.toml.jinja",
    "README.md": "README.md.jinja",
    "AGENTS.md": "AGENTS.md.jinja",
    "Dockerfile": "Dockerfile.jinja",
    ".dockerignore": "dockerignore",
    ".gitignore": "gitignore",
    ".pre-commit-config.yaml": "pre-commit-config.yaml.jinja",
    ".github/workflows/ci.yml": "ci.yml.jinja",
    "src/NAME/__init__.py": "package.py.jinja",
    "src/NAME/__main__.py": "SIDE/__main__.py.jinja",
    "tests/conftest.py": "conftest.py",
}
_FILES: Mapping[Side, dict[str, str]] = {
    "server": {
        **_SHARED,
        "src/NAME/server.py": "server/server.py.jinja",
        "src/NAME/serving.py": "server/serving.py.jinja",
        "tests/test_contract.py": "server/test_contract.py.jinja",
        "tests/test_server.py": "server/test_server.py.jinja",
    },
    "client": {
        **_SHARED,
        "src/NAME/client.py": "client/client.py.jinja",
        "tests/test_client.py": "client/test_client.py.jinja",
    },
}
_MIRRORED: Mapping[str, str] = {
    "server/server.py.jinja": "server/mirrored_server.py.jinja",
    "server/test_server.py.jinja": "server/test_mirrored_server.py.jinja",
    "client/client.py.jinja": "client/mirrored_client.py.jinja",
    "client/test_client.py.jinja": "client/test_mirrored_client.py.jinja",
}
"""Templates that replace others if a server is mirrored."""

_OF_APP = {"src/NAME/view.html": "server/view.html"}
"""Further files of a server with a user interface."""

_EMPTY = "src/NAME/py.typed"


@dataclass(frozen=True)
class Project:
    """The values for the templates of a project.

    Attributes:
        name: Its name as a distribution.
        side: Whether it is a server or a client.
        revision_names: The revisions of its package, oldest first.
        transport_names: The transports of its package, or `all`.
        mirror: Lines of `[tool.mcpgen.mirror]`; `None` without a mirrored server.
        needs_uritemplate: Whether the mirrored server has resource templates.
        schemas_dir: The user's folder of revisions as TOML, relative to the project; `None` for
            none.
        mcpgen: The requirement by which pip installs mcpgen in CI; `None` for CI without mcpgen.
        feature_names: The features of its package.
        namespace: Its namespace in the registry; `None` if it is not published there.
        app: Whether the tool of a server has a user interface.
    """

    name: str
    side: Side
    revision_names: tuple[str, ...]
    transport_names: tuple[str, ...] = ("all",)
    mirror: Code | None = None
    needs_uritemplate: bool = False
    schemas_dir: Code | None = None
    mcpgen: str | None = None
    feature_names: tuple[str, ...] = ()
    namespace: str | None = None
    app: bool = False

    @property
    def module(self) -> str:
        """The import name of the project."""
        return module_name(self.name)

    @property
    def http(self) -> bool:
        """Whether its package speaks HTTP."""
        return self.transport_names != ("stdio",)

    @property
    def stdio(self) -> bool:
        """Whether its package speaks over standard input and output."""
        return not {"all", "stdio"}.isdisjoint(self.transport_names)

    @property
    def auth(self) -> bool:
        """Whether its package can ask for access tokens."""
        return not {"all", "auth"}.isdisjoint(self.feature_names)

    @property
    def install_mcpgen(self) -> Code:
        """The command that installs mcpgen in CI, as YAML."""
        return Code(json.dumps(f"pip install {shlex.quote(self.mcpgen or '')}"))

    @property
    def revisions(self) -> Code:
        """The revisions as TOML."""
        return toml(list(self.revision_names))

    @property
    def transports(self) -> Code:
        """The transports as TOML."""
        return toml(list(self.transport_names))

    @property
    def features(self) -> Code | None:
        """The features as TOML; `None` for none."""
        return toml(list(self.feature_names)) if self.feature_names else None

    @property
    def requirements(self) -> Code:
        """The requirements of the project, as TOML."""
        mirror = ["jsonschema"] if self.mirror else []
        templates = ["uritemplate"] if self.needs_uritemplate else []
        return toml([REQUIREMENTS[name] for name in sorted([*_ALWAYS, *mirror, *templates])])

    @property
    def http_requirements(self) -> Code:
        """The requirements of the project for HTTP, as TOML."""
        return toml([REQUIREMENTS[name] for name in _OVER_HTTP[self.side]])

    @property
    def dev_requirements(self) -> Code:
        """The requirements for development, as TOML: tools, and libraries for type checkers."""
        names = _OVER_HTTP["client"] if self.http and self.side == "client" else ()
        return toml([*(REQUIREMENTS[name] for name in names), *TOOLS])

    @property
    def about_uri(self) -> str:
        """The URI of the first resource."""
        return f"{self.name}://about"

    @property
    def view_uri(self) -> str:
        """The URI of the user interface."""
        return f"ui://{self.name}/view.html"

    @property
    def about_text(self) -> str:
        """The contents of the first resource."""
        return f"{self.name} measures texts."

    @property
    def usage(self) -> str:
        """The text that the client prints if no server is named."""
        targets = "URL | COMMAND [ARGUMENT...]" if self.http else "COMMAND [ARGUMENT...]"
        return f"usage: python -m {self.module} {targets}"


def toml(value: Json) -> Code:
    """A value as TOML, in ASCII."""
    return Code(toml_value(value))


def module_name(name: str) -> str:
    """The import name for the name of a project.

    Raises:
        UsageError: The name is not that of a distribution, or hides a required module.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            "expected a name of lower-case letters, digits, '-', '_' and '.', beginning with a"
            f" letter, got {safe_text(name)!r}"
        )
    module = re.sub(r"[-.]", "_", name)
    taken = module in sys.stdlib_module_names or module in RUNTIME | _RESERVED
    if taken or keyword.iskeyword(module):
        raise UsageError(
            f"expected a name that no other module has, got {name!r}; try {name}-{PROTOCOL}"
        )
    return module


def check_requirement(text: str) -> str:
    """Check and return a requirement for pip.

    Raises:
        UsageError: The text is empty, has several lines, is an option of pip, or a name alone.
    """
    if _OWN_NAME.match(text):
        raise UsageError(
            "--mcpgen: expected a wheel or git+https://...@COMMIT, since no package index has"
            f" mcpgen, got {safe_text(text)!r}"
        )
    if not text.strip() or not text.isprintable() or text.startswith("-"):
        raise UsageError(
            "--mcpgen: expected what pip installs mcpgen from, such as a wheel or"
            f" git+https://...@COMMIT, got {safe_text(text)!r}"
        )
    return text


def user_files(project: Project, mirror: Mirror | None = None) -> dict[str, str]:
    """The text of the files that are written once, by path within the project."""
    files: dict[str, str] = {}
    for path, source in (_FILES[project.side] | (_OF_APP if project.app else {})).items():
        template = source.replace("SIDE", project.side)
        if mirror is not None:
            template = _MIRRORED.get(template, template)
        files[_project_path(path, project)] = _text(template, project, mirror)
    modules = {path: text for path, text in files.items() if path.endswith(".py")}
    return files | format_modules(modules) | {_project_path(_EMPTY, project): ""}


def _project_path(path: str, project: Project) -> str:
    return path.replace("NAME", project.module)


def _text(source: str, project: Project, mirror: Mirror | None) -> str:
    if source.endswith(".jinja"):
        return templates.render(f"project/{source}", project=project, mirror=mirror)
    return (paths.templates_dir() / "project" / source).read_text(encoding="utf-8")


def folder(project: Project, name: str) -> str:
    """The folder of a generated package within a project."""
    return f"src/{project.module}/{name}"
