"""`[tool.mcpgen]`: what it may say, and what commands without options do with it."""

from __future__ import annotations

import json
import re
import tomllib
from contextlib import chdir
from dataclasses import asdict
from pathlib import Path

import pytest

import documents
from generator.command_line import run
from generator.tables import table
from generator.test_cli import OLDEST
from mcpgen.errors import SettingsError
from mcpgen.package import manifest, settings
from mcpgen.package.settings import MirrorSettings, PackageSettings, RenderSettings, Settings
from mcpgen.project.commands import differences

pytestmark = pytest.mark.costly

ONE = f"""
[project]
name = "x"
released = 2030-01-01

[tool.mcpgen]
revisions = ["{OLDEST}"]
parts = ["types"]
output = "src/acme/types"
"""


def save_settings(folder: Path, text: str) -> Path:
    """A project with some settings."""
    (folder / settings.FILE).write_text(text, "utf-8")
    return folder


def read_settings(folder: Path, text: str) -> Settings:
    """The settings of a project that has some."""
    config = settings.read(save_settings(folder, text))
    assert config is not None
    return config


EVERY_KEY = """
[tool.mcpgen]
output = "a"
revisions = ["latest"]
parts = ["client"]
transports = ["stdio"]
features = ["schemas"]
models = "pydantic"
runtime = "installed"
schemas = ["own.json"]
facts = "own.toml"
errata = false
strict = true
templates = "templates"
hooks = [["black", "{output}"]]
extensions = ["apps"]
patch = "a.patch"
gitattributes = false
keep_old_modules = true
sources = ["src"]
decoding = "strict"
extra = "forbid"
mutability = "mutable"
"""


def test_a_package_has_each_key_of_the_table(tmp_path: Path) -> None:
    config = read_settings(tmp_path, EVERY_KEY)
    table = tomllib.loads(EVERY_KEY)["tool"]["mcpgen"] | {"extra": ["forbid"]}
    [package] = config.packages
    assert json.loads(json.dumps(asdict(package))) == table
    few = PackageSettings("b")
    assert config.templates(package) == tmp_path / "templates"
    assert config.patch(package) == tmp_path / "a.patch"
    assert (config.templates(few), config.patch(few)) == (None, None)
    assert (few.errata, few.gitattributes, RenderSettings("a", "b").errata) == (True, True, True)
    assert (few.strict, few.keep_old_modules) == (False, False)
    with chdir(tmp_path):  # paths are named from here
        assert (config.directory(few), config.patch(package)) == (Path("b"), Path("a.patch"))


def test_several_packages_are_an_array_of_tables(tmp_path: Path) -> None:
    text = "[[tool.mcpgen.packages]]\noutput='a'\nrevisions=['all']\nfeatures='used'\n" * 2
    with pytest.raises(SettingsError, match="packages/1/output: expected a directory of its own"):
        settings.read(save_settings(tmp_path, text))
    config = read_settings(tmp_path, text.replace("'a'", "'b'", 1))
    assert [(own.output, *own.features) for own in config.packages] == [
        ("b", "used"),
        ("a", "used"),
    ]


def test_settings_come_from_the_nearest_folder_that_has_some(tmp_path: Path) -> None:
    inner = save_settings(tmp_path, ONE) / "src" / "acme"
    inner.mkdir(parents=True)
    save_settings(inner, "[project]\nname = 'mcpgen-user'\n")
    config = settings.find(inner)
    assert config is not None
    assert config.root == tmp_path


@pytest.mark.parametrize(
    "text",
    ["", "[tool]\nmcpgenerator = 1\n", "tool = 1 # mcpgen", "no TOML ["],
)
def test_a_project_without_the_table_has_no_settings(text: str, tmp_path: Path) -> None:
    assert settings.read(save_settings(tmp_path, text)) is None


MIRROR = """
[tool.mcpgen]
revisions = ["all"]
output = "src/acme/protocol"
[tool.mcpgen.mirror]
server = "python other.py"
output = "src/acme/mirror"
"""

WRONG: dict[str, tuple[str, str]] = table("settings")


@pytest.mark.parametrize(("text", "expected"), WRONG.values(), ids=WRONG)
def test_invalid_settings_are_named_with_their_place(
    text: str, expected: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError) as raised:
        settings.read(save_settings(tmp_path, text))
    assert expected in str(raised.value)


def test_a_mirror_is_no_link_out_of_the_project(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "src/acme").mkdir(parents=True)
    (project / "src/acme/mirror").symlink_to(tmp_path)
    with pytest.raises(SettingsError, match="/mirror/output: expected a path within"):
        settings.read(save_settings(project, MIRROR))


def test_a_package_is_owned_by_the_project_that_lists_it(tmp_path: Path) -> None:
    assert settings.owner(tmp_path / "src/acme/types") is None
    save_settings(tmp_path, ONE)
    owner = settings.owner(tmp_path / "src/acme/types")
    assert owner is not None
    assert owner.root == tmp_path.resolve()
    assert settings.owner(tmp_path / "src/acme") is None
    assert settings.require(tmp_path / "src") == owner


@pytest.mark.parametrize("parts", ["", "parts = ['all']\n", "parts = ['client', 'server']\n"])
def test_a_mirror_is_named_by_a_file_or_a_server(parts: str, tmp_path: Path) -> None:
    text = MIRROR.replace("[tool.mcpgen.mirror]", f"{parts}[tool.mcpgen.mirror]")
    config = read_settings(tmp_path, text)
    assert config.mirror == MirrorSettings("src/acme/mirror", server="python other.py")
    assert (config.protocol, config.mirror_directory) == ("protocol", tmp_path / "src/acme/mirror")


def test_mcpgen_without_a_word_generates_what_the_settings_say(tmp_path: Path) -> None:
    save_settings(tmp_path, ONE)
    first = run(cwd=tmp_path)
    assert first.code == 0
    assert re.match(r"src/acme/types: \d+ files created", first.out)
    record = json.loads((tmp_path / "src/acme/types" / manifest.NAME).read_text())
    assert (record["options"]["parts"], record["options"]["errata"]) == (["types"], True)
    (tmp_path / "src/acme/deep").mkdir()
    again = run("generate", cwd=tmp_path / "src/acme/deep")
    assert (again.code, "unchanged" in again.out) == (0, True)
    assert run("check", cwd=tmp_path).out == "src/acme/types: up to date\n"
    assert run("check", tmp_path).code == 0


@pytest.mark.parametrize(
    "words", [["generate"], ["update"], ["check"], ["--force"], ["--trusted"], ["--watch"]]
)
def test_without_settings_a_command_says_what_it_needs(words: list[str], tmp_path: Path) -> None:
    ended = run(*words, cwd=tmp_path)
    assert ended.code == 2
    assert "a pyproject.toml with [tool.mcpgen]" in ended.err


def test_an_error_in_one_package_leaves_the_others_alone(tmp_path: Path) -> None:
    text = f"[[tool.mcpgen.packages]]\noutput='good'\nrevisions=['{OLDEST}']\nparts=['types']\n"
    save_settings(
        tmp_path, text + "[[tool.mcpgen.packages]]\noutput='bad'\nrevisions=['2000-01-01']\n"
    )
    ended = run(cwd=tmp_path)
    assert (ended.code, "2000-01-01" in ended.err) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == [settings.FILE]


@pytest.mark.parametrize("directory", [(), ("pkg",)])
def test_options_do_not_mix_with_settings(directory: tuple[str, ...], tmp_path: Path) -> None:
    text = f"revisions=['{OLDEST}']\nfeatures=['mount']\noutput='pkg'\n"
    save_settings(tmp_path, f"[tool.mcpgen]\n{text}")
    assert run(cwd=tmp_path).code == 0
    before = (tmp_path / "pkg/mcpgen.json").read_bytes()
    for words, advice in (
        (("--revision", "latest"), "configures this project; change it, and run mcpgen"),
        (("--features", "+trace"), 'write features = ["mount", "trace"] there'),
        (("--watch", "--json"), "--watch has no end, so it does not go with --json"),
    ):
        ended = run("update", *directory, *words, cwd=tmp_path)
        assert (ended.code, advice in ended.err) == (2, True)
    assert (tmp_path / "pkg/mcpgen.json").read_bytes() == before


@pytest.mark.parametrize(("name", "count"), [("settings.toml", 1), ("packages.toml", 2)])
def test_the_settings_of_the_documents_can_be_used(name: str, count: int, tmp_path: Path) -> None:
    save_settings(tmp_path, documents.examples()[name])
    assert run("-q", cwd=tmp_path).code == 0
    ended = run("check", cwd=tmp_path)
    assert (ended.code, ended.out.count(": up to date\n")) == (0, count)


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a package of the oldest revision, whose settings may be changed."""
    folder = tmp_path_factory.mktemp("generated")
    save_settings(folder, f"[tool.mcpgen]\noutput = 'pkg'\nrevisions = ['{OLDEST}']\n")
    assert run("-q", cwd=folder).code == 0
    return folder


@pytest.mark.parametrize(
    ("changed", "other"),
    [
        ("", ""),
        ("revisions = ['2025-03-26']", "revisions"),
        ("parts = ['protocol', 'server']", "parts, features"),  # a client has default features
        ("runtime = 'installed'", "runtime"),
        ("gitattributes = false", "gitattributes"),
        ("templates = 'mine'", "templates"),
        ("extensions = ['tasks']", "extensions"),
        ("decoding = 'strict'", "decoding"),
        ("models = 'pydantic'\nmutability = 'mutable'", "models, mutability"),
        ("errata = false\ntransports = ['http']", "transports, errata"),
    ],
)
def test_each_setting_that_changed_is_named(changed: str, other: str, generated: Path) -> None:
    (generated / "mine").mkdir(exist_ok=True)
    (generated / "a.patch").touch()
    revisions = "" if changed.startswith("revisions") else f"revisions = ['{OLDEST}']\n"
    text = f"[tool.mcpgen]\noutput = 'pkg'\n{revisions}{changed}\n"
    config = read_settings(generated, text)
    expected = [(f"{generated / 'pkg'} has other {other}", "mcpgen generate")] if other else []
    assert list(differences(config)) == expected


@pytest.mark.parametrize("key", ["schemas = ['own.json']", "facts = 'own.json'"])
def test_a_file_of_the_settings_has_to_be_there(key: str, tmp_path: Path) -> None:
    ended = run("-q", cwd=save_settings(tmp_path, f"{ONE}{key}\n"))
    assert ended.code == 2
    assert ended.err.endswith(f"pyproject.toml: expected a file, got {tmp_path / 'own.json'}\n")
