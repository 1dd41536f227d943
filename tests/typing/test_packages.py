"""Packages and code of their users under strict type checkers, each package of other parts.

Both see the modules that they have not seen in another package: mypy with the same modules below
them, pyright with the same imports.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

import mcpgen_runtime
from generator.command_line import run
from generator.contract_surfaces import contract
from generator.selections import (
    LAST_WITH_SESSIONS,
    MIDDLE,
    NAMES,
    NEWEST,
    OLDEST,
    PAIRWISE,
    rendered,
    write_package,
)
from interop.official_sdk import environment
from mcpgen.contract.document import text_of
from mcpgen.model.feature_table import FEATURES
from mcpgen.render.closure import imported_files

pytestmark = [pytest.mark.typing, pytest.mark.timeout(900)]

ALL, NONE = ("all",), ("none",)
OF_SERVERS = tuple(
    each.name
    for each in FEATURES
    if (each.is_default or each.was_default) and each.parts == {"server"}
)
SOME = ("auth", "sync", "mount", "inspector", "elicitation", "direct", "methods", "reload")
OTHERS = ("groups", "proxy", "openapi", "telemetry", "restart", "migration", "dependencies")
CHOICES: tuple[tuple[str, str, tuple[str, ...], str, tuple[str, ...]], ...] = (
    *((*choice, "", ALL) for choice in PAIRWISE),
    ("all", "all", (MIDDLE, NEWEST), "pydantic", ALL),
    *(("all", "all", (NEWEST,), "", features) for features in (NONE, SOME, OTHERS)),
    ("client", "http", (MIDDLE,), "", NONE),
    ("server", "stdio", (LAST_WITH_SESSIONS,), "", NONE),
    ("all", "all", (OLDEST, NEWEST), "", ()),
    *(("server", "stdio", (NEWEST,), "", ("none", name)) for name in OF_SERVERS),
    ("server", "http", (OLDEST, MIDDLE), "", ("none", "auth", "mount")),
)
PACKAGES = {f"package{number}": choice for number, choice in enumerate(CHOICES)}
STRICT = {"strict_structs": "", "strict_models": "pydantic"}
OF_THE_NEWEST = [
    name
    for name, (parts, _, revisions, models, features) in PACKAGES.items()
    if features == ALL
    and (models or revisions == (NEWEST,) or (parts, revisions) == ("types", (MIDDLE, NEWEST)))
]
"""Packages that pyright sees too. The modules of older revisions are in the committed package,
which it sees whole, and a name that a selection lacks is an error of mypy as well.
"""
COMMITTED = Path(mcpgen_runtime.__file__).parent
WRONG = "wrong"
CALLS = "calls"  # of a contract
ERROR_OF_MYPY = re.compile(r"^(?P<package>\w+)[/\\].*: error: .*$", re.MULTILINE)


def run_checker(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Have a type checker run to its end in a folder, with errors or without."""
    command = [sys.executable, "-m", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done


def run_mypy(folder: Path) -> dict[str, list[str]]:
    """The errors of each package."""
    errors = defaultdict(list)
    names = [folder / name for name in (*PACKAGES, *STRICT, CALLS, WRONG)]
    seen = {path.as_posix() for path in unseen_modules(names, of_imports=False)}
    files = [path for path in sorted(seen) if f"{path}i" not in seen]
    (folder / "files").write_text("\n".join(files), "utf-8")
    # Of a module that another one imports alone, no body of a function is read.
    options = ("--strict", f"--cache-dir={os.devnull}", "--follow-imports=silent")
    for match in ERROR_OF_MYPY.finditer(run_checker(folder, "mypy", *options, "@files").stdout):
        errors[match["package"]].append(match[0])
    return errors


def unseen_modules(packages: Iterable[Path], *, of_imports: bool) -> Iterator[Path]:
    """Modules that no package before has with the same modules below them, or the same imports."""
    seen: set[tuple[str, ...]] = set()
    for package in packages:
        files = (path for path in package.rglob("*.py*") if path.suffix in (".py", ".pyi"))
        modules = {path.relative_to(package).as_posix(): path.read_text("utf-8") for path in files}
        imports = {path: {*imported_files(path, text, modules)} for path, text in modules.items()}
        for path in modules:
            needed = {path, *imports[path]}
            more = set() if of_imports else needed
            while more := {each for name in more for each in imports[name]} - needed:
                needed |= more
            row = (path, *(part for each in sorted(needed) for part in (each, modules[each])))
            if row not in seen:
                yield package / path
            seen.add(row)


def run_pyright(folder: Path) -> dict[str, list[str]]:
    """The errors of each package."""
    packages = (COMMITTED, *(folder / name for name in (*OF_THE_NEWEST, *STRICT, CALLS, WRONG)))
    unseen = unseen_modules(packages, of_imports=True)
    names = [f"{path.relative_to(folder)}" for path in unseen if path.is_relative_to(folder)]
    settings = {"include": names, "typeCheckingMode": "strict", "reportPrivateUsage": False}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    done = run_checker(folder, "pyright", "--outputjson", "--pythonpath", sys.executable)
    errors = defaultdict(list)
    for row in json.loads(done.stdout)["generalDiagnostics"]:
        if row["severity"] == "error":
            package = Path(row["file"]).relative_to(folder).parts[0]
            errors[package].append(f"{row['file']}:{row['range']['start']}: {row['message']}")
    return errors


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every package, as it is rendered: layout means nothing to type checkers."""
    folder = tmp_path_factory.mktemp("packages").resolve()
    for name, choice in PACKAGES.items():
        write_package(rendered(*choice), folder, name)
    for name, models in STRICT.items():
        types = rendered("types", "all", (MIDDLE, NEWEST), models, decoding="strict")
        write_package(types, folder, name)
    (folder / "shop.contract.json").write_text(text_of(contract()))
    [package] = (name for name, choice in PACKAGES.items() if choice == (*PAIRWISE[-1], "", ALL))
    (folder / CALLS).mkdir()
    options = ("-o", f"{CALLS}/__init__.py", "--package", package)
    assert run("mirror", "shop.contract.json", *options, cwd=folder).code == 0
    return write_package({"__init__.py": "number: int = 'text'\n"}, folder, WRONG)


Checker = Callable[[Path], Mapping[str, list[str]]]
CASES = [(run_mypy, name) for name in PACKAGES] + [(run_pyright, name) for name in OF_THE_NEWEST]


@pytest.fixture(scope="module")
def errors_of(packages: Path) -> Callable[[Checker], Mapping[str, list[str]]]:
    """A function that returns the errors of a type checker by package; each checker runs once."""
    return cache(lambda checker: checker(packages))


@pytest.mark.parametrize("checker", [run_mypy, run_pyright])
@pytest.mark.parametrize("package", [*STRICT, CALLS])
def test_a_type_checker_finds_nothing_in_other_packages(
    errors_of: Callable[[Checker], Mapping[str, list[str]]], checker: Checker, package: str
) -> None:
    assert errors_of(checker).get(package, []) == []


@pytest.mark.parametrize(
    ("checker", "package"),
    CASES,
    ids=[f"{checker.__name__}-{'+'.join(map(str, PACKAGES[name]))}" for checker, name in CASES],
)
def test_a_strict_type_checker_finds_nothing(
    errors_of: Callable[[Checker], Mapping[str, list[str]]], checker: Checker, package: str
) -> None:
    errors = errors_of(checker)
    assert errors[WRONG]  # so that errors are seen
    assert errors.get(package, []) == []


COMMAND_LINES = {
    "default_package": ("-r", "latest"),
    "of_types": ("-r", "latest", "--parts", "types"),
    "of_models": ("-r", "latest", "--parts", "types", "--models", "pydantic"),
    "bare_server": ("-r", "latest", "--parts", "server", "--features", "none"),
    "bare_client": ("-r", "latest", "--parts", "client", "--features", "none"),
    "over_stdio": ("-r", "latest", "--transport", "stdio"),
    "over_http": ("-r", "latest", "--transport", "http"),
    "everything": ("-r", "all", "--features", "all"),
}

TYPES_PROGRAM = """
from {package} import DecodeError, convert, decoder, to_builtins
from {package}.r2026_07_28 import methods, models

tool = decoder(models.Tool)(b"{{}}")
print(convert({{}}, models.Tool).name, methods.CALL_TOOL.decode_params(b"{{}}").name)
row: methods.Method = methods.CLIENT_REQUESTS["tools/call"]
try:
    print(row.name, to_builtins(tool))
except DecodeError:
    pass
"""

SERVER_PROGRAM = """
from {package} import Context, Server

server = Server("weather")


@server.tool()
def forecast(city: str, ctx: Context) -> str:
    ctx.progress(1)
    return city
"""
CLIENT_PROGRAM = """
from {package} import connect


async def main() -> None:
    async with connect({target}) as client:
        print(await client.list_tools())
"""


def program_of(package: str) -> str:
    """The program of a user of a package."""
    if package in ("of_types", "of_models"):
        return TYPES_PROGRAM.format(package=package)
    target = '"https://example.com/mcp"' if "http" in package else '["python", "weather.py"]'
    program = SERVER_PROGRAM.format(package=package) if "client" not in package else ""
    if "server" not in package:
        program += CLIENT_PROGRAM.format(package=package, target=target)
    return program


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("installed").resolve()


@pytest.mark.parametrize("name", COMMAND_LINES)
def test_mypy_finds_no_error_in_the_package_of_a_user(folder: Path, name: str) -> None:
    made = run("-o", str(folder / name), *COMMAND_LINES[name])
    (install,) = (
        line for line in (made.out + made.err).splitlines() if line.startswith("install: ")
    )
    (folder / f"use_{name}.py").write_text(program_of(name), "utf-8")
    pip, command, *distributions = shlex.split(install.removeprefix("install: "))
    assert (pip, command) == ("pip", "install")
    python = environment(folder / "-".join(["with", *distributions]), tuple(distributions))
    words = ("--strict", f"--cache-dir={folder / 'cache'}", f"--python-executable={python}")
    done = run_checker(folder, "mypy", *words, f"use_{name}.py", name)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


ERROR = re.compile(r"^([^:]+):(\d+): error: ", re.MULTILINE)
MODULE = f"r{NEWEST.replace('-', '_')}"
USER = f"""
from typing import assert_type

from pkg import decoder, encode
from pkg.{MODULE} import models

tool = models.Tool(name="add", input_schema={{"type": "object"}}, title="Add")
assert_type(tool.title, str | None)
text = models.TextContent(text="5", annotations=models.Annotations(priority=1))
result = models.CallToolResult(content=[text], structured_content={{"sum": 5}})
assert_type(decoder(models.CallToolResult)(encode(result)), models.CallToolResult)
models.Tool(input_schema={{"type": "object"}})  # expect: error
models.Tool(name=5, input_schema={{"type": "object"}})  # expect: error
models.Tool(name="add", inputSchema={{"type": "object"}})  # expect: error
models.Tool(name="add", input_schema={{"type": "object"}}, titel="Add")  # expect: error
tool.title = "Sum"  # expect: error
"""
OF_ALL = f"""
from typing import assert_type

from pkg import decoder, models
from pkg.{MODULE} import models as newest


class PricedTool(models.Tool, frozen=True):
    price: int


tool = PricedTool(name="add", input_schema={{"type": "object"}}, price=5)
assert_type(tool.price, int)
assert_type(decoder(models.Tool)(b"{{}}"), models.Tool)
assert_type(models.Tool.model_validate(tool), models.Tool)
block: newest.ContentBlock = newest.TextContent(text="5")
if isinstance(block, newest.ContentBlock):
    print(newest.EmptyResult(), models.Tool.model_json_schema())
PricedTool(name="add", input_schema={{"type": "object"}})  # expect: error
PricedTool(name="add", input_schema={{"type": "object"}}, price="5")  # expect: error
"""
SETTINGS = """
[mypy]
plugins = pydantic.mypy
strict = true

[pydantic-mypy]
init_forbid_extra = true
init_typed = true
warn_required_dynamic_aliases = true
"""


@pytest.mark.parametrize(("revisions", "user"), [((NEWEST,), USER), (NAMES, OF_ALL)])
def test_the_plugin_finds_wrong_lines_of_a_user_alone(
    folder: Path, tmp_path: Path, revisions: tuple[str, ...], user: str
) -> None:
    write_package(rendered("types", "all", revisions, "pydantic"), tmp_path)
    (tmp_path / "user.py").write_text(user, "utf-8")
    (tmp_path / "mypy.ini").write_text(SETTINGS, "utf-8")
    cache_dir = f"--cache-dir={folder / 'cache-of-plugin'}"
    done = run_checker(tmp_path, "mypy", cache_dir, "user.py", "pkg")
    errors = {(file, int(line)) for file, line in ERROR.findall(done.stdout)}
    wrong = {number for number, line in enumerate(user.splitlines(), 1) if "# expect" in line}
    assert not done.stderr
    assert errors == {("user.py", line) for line in wrong}, done.stdout
