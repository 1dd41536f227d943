"""`--features used`: the features that a program uses, found in its source text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from documents import examples
from generator.command_line import run
from generator.selections import NEWEST
from generator.tables import table
from mcpgen.errors import UsageError
from mcpgen.model.choice import whole_features
from mcpgen.model.feature_table import FEATURES
from mcpgen.package.used_features import chosen_words, find_uses, program_files, uses_in

SERVER = "from pkg import *\nserver = Server('a')\n"
CONTEXT = "from pkg import Context\nasync def tool(ctx: Context[None]) -> None:\n    "
CLIENT = "import pkg\nasync def main():\n    async with pkg.connect('x') as client:\n        "

USES = {
    **{f"{SERVER}server.{name}": each.name for each in FEATURES for name in each.server_members},
    **{f"{CONTEXT}ctx.{name}": each.name for each in FEATURES for name in each.context_members},
    **{f"{CLIENT}client.{name}": each.name for each in FEATURES for name in each.client_members},
    "def f(q):\n" + "    q = q.mount()\n" * 300: "mount",
    "def f(s): return " + "a + " * 900 + "s.mount()": "mount",
    **{code: names for group in table("uses").values() for code, names in group.items()},
}
"""Code, with the features that it uses of the package `pkg`."""


@pytest.mark.parametrize(("code", "expected"), USES.items())
def test_the_features_that_code_uses_are_found(code: str, expected: str) -> None:
    uses = uses_in({"a.py": code}, "pkg")
    assert {use.feature for use in uses} == {*expected.split()}


@pytest.mark.parametrize(
    "files",
    [
        {"src/acme/a.py": "from .b import server\nserver.mount", "src/acme/b.py": "{}"},
        {"src/acme/a.py": "import acme.b\nacme.b.server.mount", "src/acme/b.py": "{}"},
        {
            "src/acme/a.py": "from . import b as c\nc.server.mount",
            "src/acme/b.py": "{}",
            "src/acme/__init__.py": "",
        },
        {"src/acme/a.py": "from acme import server\nserver.mount", "src/acme/__init__.py": "{}"},
        {"acme/d/a.py": "from ..b import server as s\ns.mount", "acme/b.py": "{}"},
        {"acme/a.py": "import acme.b as c\nc.server.mount", "acme/b.py": "{}"},
        {"1/acme/a.py": "from acme import b as it\nit.server.mount", "1/acme/b.py": "{}"},
    ],
    ids=lambda files: next(iter(files.values())).split("\n", maxsplit=1)[0],
)
def test_variables_are_followed_across_modules(files: dict[str, str]) -> None:
    source = "from acme.protocol import Server\nserver = Server('a')"
    texts = {path: text.replace("{}", source) for path, text in files.items()}
    [use] = uses_in(texts, "acme.protocol")
    assert (use.feature, use.line, use.code) == ("mount", 2, "Server.mount")
    assert use.path.endswith("a.py")


def test_files_of_the_program_alone_are_read(tmp_path: Path) -> None:
    marks = {"env": "pyvenv.cfg", "other": "mcpgen.json"}
    for place in ("src/a", "src/in/b", ".git/c", "build/c", "env/c", "other/c", "src/pkg/c"):
        file = tmp_path / f"{place}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("from pkg import Depends")
        (file.parent / marks.get(file.parent.name, "notes.txt")).write_text("MCP_TRACE")
    (tmp_path / "src" / "in" / "Makefile").write_text("a:\n\tpython -m pkg serve a:b")
    (tmp_path / "src" / "link").symlink_to(tmp_path / "src" / "in")
    (tmp_path / "src" / "gone.py").symlink_to("none")
    (tmp_path / "src" / "bytes.md").write_bytes(b"\xff MCP_TRACE".ljust(4 * 1024 * 1024))
    (tmp_path / "src" / "larger.md").write_bytes(b"MCP_TRACE".ljust(4 * 1024 * 1024 + 1))
    uses = find_uses([tmp_path, tmp_path / "src" / "notes.txt"], tmp_path / "src" / "pkg", "pkg")
    places = sorted((Path(use.path).name, use.line, use.feature) for use in uses)
    expected = [("Makefile", 2, "serve"), ("a.py", 1, "dependencies"), ("b.py", 1, "dependencies")]
    assert places == [*expected, ("bytes.md", 1, "trace"), ("notes.txt", 1, "trace")]
    with pytest.raises(UsageError, match="which is not there"):
        find_uses([tmp_path / "none"], tmp_path, "pkg")


def test_a_program_of_too_many_files_is_refused(tmp_path: Path) -> None:
    for number in range(20_000):
        (tmp_path / f"{number}.md").touch()
    assert len([*program_files([tmp_path], tmp_path)]) == 20_000
    (tmp_path / "a.py").touch()
    with pytest.raises(UsageError, match="expected at most 20000 files, got more below"):
        list(program_files([tmp_path], tmp_path))


def test_bindings_that_depend_on_themselves_have_no_class() -> None:
    code = "a = b\nb = a\na.listen\nclass C(C): ...\nC().mount\nfrom . import m\nm.m.mount"
    assert uses_in({"m.py": code}, "pkg") == ()


def test_further_words_add_and_take_away() -> None:
    uses = uses_in({"a.py": SERVER + "server.mount; server.prompt"}, "pkg")
    words = chosen_words(["used", "trace", "-prompts"], uses)
    assert whole_features(words) == {"mount", "trace"}


VARIANTS = "add_tool_variant('a', 'b')\nserver.add_tool_variant('c', 'd')"
PYPROJECT = """
[tool.mcpgen]
output = "src/acme/protocol"
revisions = ["2025-06-18"]
features = "used"
sources = ["src"]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "src" / "acme"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "app.py").write_text(
        "from .protocol import Server\n\nserver = Server('a')\nserver.mount(server)\n"
    )
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    return tmp_path


def test_check_reports_missing_and_unused_features(project: Path) -> None:
    done = run(cwd=project)
    assert "feature mount: src/acme/app.py:4 uses Server.mount" in done.out.splitlines()
    [use] = json.loads(run("--json", cwd=project).out)["uses"]
    assert [*use.values()] == ["mount", "src/acme/app.py", 4, "Server.mount"]
    assert run("check", cwd=project).code == 0

    app = project / "src" / "acme" / "app.py"
    app.write_text(app.read_text().replace("mount(server)", VARIANTS))
    done = run("check", cwd=project)
    assert done.code == 1
    assert "lacks the feature variants: src/acme/app.py:4 uses Server.add_tool_var" in done.out
    assert "has the feature mount, which nothing uses" in done.out

    assert done.out.endswith("protocol: other features are used; run mcpgen update\n")
    shown = "feature variants: src/acme/app.py:4 uses Server.add_tool_variant and 1 other place"
    assert shown in run("update", cwd=project).out.splitlines()
    assert run("check", cwd=project).code == 0
    record = json.loads((project / "src/acme/protocol/mcpgen.json").read_text("utf-8"))
    assert record["options"]["sources"] == ["../.."]
    assert "variants" in record["options"]["features"]


def test_a_package_without_settings_remembers_its_sources(project: Path) -> None:
    (project / "pyproject.toml").unlink()
    package = Path("src/acme/protocol")
    words = ("--revision", NEWEST, "--features", "used,trace", "-o", package)
    assert "feature mount: " in run(*words, cwd=project).out
    done = run("update", package, "--features", "-trace", cwd=project)
    assert done.code == 0, done.err
    assert run("check", package, cwd=project).code == 0
    done = run("update", package, "--features", "auth", cwd=project)  # named from now on
    assert done.code == 0, done.err
    (project / "src" / "acme" / "app.py").unlink()
    assert run("check", package, cwd=project).code == 0


def test_an_update_reads_the_recorded_sources_or_those_that_are_named(project: Path) -> None:
    (project / "pyproject.toml").rename(project / ".git")  # still a project
    (project / "tools").mkdir()
    (project / "tools" / "a.py").write_text("from acme.protocol import Depends")
    words = ("--revision", NEWEST, "--features", "used", "--sources", "tools")
    expected = "feature dependencies: tools/a.py:1 uses Depends"
    for command in ((*words, "-o"), ("update",)):
        done = run(*command, "src/acme/protocol", cwd=project)
        assert [line for line in done.out.splitlines() if "feature" in line] == [expected]
    done = run("update", "--sources", "src", "src/acme/protocol", cwd=project)
    assert "feature mount: " in done.out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--sources src", "--sources: expected --features used"),
        ("--features used --parts server --transport stdio", "auth needs http"),
    ],
)
def test_options_that_contradict_are_an_error(words: str, expected: str, project: Path) -> None:
    (project / "pyproject.toml").unlink()
    (project / "src" / "acme" / "app.py").write_text("from .protocol import OAuth")
    done = run("-r", NEWEST, *words.split(), "-o", "src/acme/protocol", cwd=project)
    assert done.code != 0
    assert expected in done.err


@pytest.mark.parametrize(
    ("name", "features"),
    [("calls.py", "callbacks returns"), ("inputs.py", "groups sync")],
)
def test_a_client_of_the_documents_and_its_server_use_few_features(
    name: str, features: str
) -> None:
    program = {each: examples()[each] for each in (name, "server.py")}
    assert {use.feature for use in uses_in(program, "pkg")} == {*features.split()}
