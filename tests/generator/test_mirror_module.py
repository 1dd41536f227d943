"""`mcpgen mirror`: typed calls of a server as one module, and what becomes of it."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import mcpgen_runtime
from generator.command_line import Done, output_of, run, script_command
from generator.contract_surfaces import (
    SHOP_SERVER,
    SMALLER_SIZES,
    WHOLE_SIZES,
    changed,
    contract,
)
from mcpgen.contract.document import text_of

PACKAGE = Path(mcpgen_runtime.__file__).parent
SMALLER = SHOP_SERVER.replace(WHOLE_SIZES, SMALLER_SIZES)
COMMAND = script_command("shop.py")
CALLS = """
import asyncio
from app.calls import Shop
from app.protocol import connect
import shop

async def main() -> None:
    async with connect(shop.server) as client:
        calls = Shop(client)
        result = await calls.order(item="shirt", size="l")
        print(result)
        read = await calls.read_page(item="shirt")
        print(read.contents[0].text)
        got = await calls.advise_prompt(about="shirts")
        print(got.messages[0].content.text)

asyncio.run(main())
"""


def make_project(folder: Path) -> Path:
    """Write a server and the project `app`, which has a generated package, to a folder."""
    (folder / "shop.py").write_text(SHOP_SERVER)
    app = folder / "app"
    app.mkdir()
    (app / "__init__.py").touch()
    (app / "protocol").symlink_to(PACKAGE)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a server and the project `app`."""
    return make_project(tmp_path)


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Such a folder with the calls of the server in `app/calls.py`."""
    folder = make_project(tmp_path_factory.mktemp("mirrored"))
    done = mirror(folder)
    assert done.code == 0, done.err
    return folder


@pytest.fixture
def project(mirrored: Path, tmp_path: Path) -> Path:
    """A copy of that folder."""
    return shutil.copytree(mirrored, tmp_path / "copy", symlinks=True)


def mirror(folder: Path, *words: str, target: str = COMMAND) -> Done:
    """Write the calls of the server."""
    return run("mirror", target, "-o", "app/calls.py", *words, cwd=folder)


def module(folder: Path) -> Path:
    """The module with the calls."""
    return folder / "app" / "calls.py"


def test_the_calls_of_a_server_are_one_module(project: Path) -> None:
    assert {path.name for path in (project / "app").iterdir()} == {
        *("__init__.py", "protocol", "calls.py", "calls.contract.json")
    }
    assert "from .protocol import Client, models, to_builtins" in module(project).read_text()
    printed = output_of(CALLS, cwd=project)
    assert printed.splitlines()[1:] == ["about shirt", "advise on shirts"]
    assert "5" in printed.splitlines()[0]


def test_a_module_is_the_same_each_time_and_up_to_date(project: Path) -> None:
    before = module(project).read_bytes()
    assert mirror(project, "--force").code == 0
    assert module(project).read_bytes() == before
    checked = run("check", "app/calls.py", cwd=project)
    assert (checked.code, checked.out) == (0, "app/calls.py: up to date\n")


def test_a_changed_server_is_told_with_whom_it_breaks(project: Path) -> None:
    (project / "shop.py").write_text(SMALLER)
    checked = run("check", "app/calls.py", cwd=project)
    assert checked.code == 1
    assert "the server has changed: 1 change: 1 breaking; run mcpgen update app/calls.py" in (
        checked.out
    )
    assert "ARGUMENT_NARROWED: tool order" in checked.out
    assert run("check", "app/calls.py", "--offline", cwd=project).code == 0
    assert run("update", "app/calls.py", "--parts", "types", cwd=project).code == 2
    updated = run("update", "app/calls.py", cwd=project)
    assert (updated.code, "ARGUMENT_NARROWED" in updated.out) == (0, True)
    assert updated.out.endswith("\nwrote app/calls.py: class Shop\n")
    assert run("check", "app/calls.py", cwd=project).code == 0
    assert '"l"' not in module(project).read_text()


def test_a_server_that_does_not_start_exits_with_two(project: Path) -> None:
    (project / "shop.py").unlink()
    checked = run("check", "app/calls.py", cwd=project)
    assert (checked.code, "--offline leaves the server out" in checked.err) == (2, True)


def test_an_edited_module_differs_and_is_kept(project: Path) -> None:
    text = f"{module(project).read_text()}mine = 1\n"
    module(project).write_text(text)
    checked = run("check", "app/calls.py", "--offline", cwd=project)
    assert (checked.code, checked.out) == (
        1,
        "app/calls.py: differs; run mcpgen update app/calls.py\n",
    )
    refused = run("update", "app/calls.py", cwd=project)
    assert (refused.code, "app/calls.py: edited by hand" in refused.err) == (2, True)
    assert module(project).read_text() == text
    assert run("update", "app/calls.py", "--force", cwd=project).code == 0
    assert run("check", "app/calls.py", cwd=project).code == 0


def test_a_module_is_made_of_a_contract_alone(folder: Path) -> None:
    (folder / "shop.contract.json").write_text(text_of(contract()))
    made = mirror(folder, "--class", "Calls", target="shop.contract.json")
    assert (made.code, made.out.splitlines()[-1]) == (0, "wrote app/calls.py: class Calls")
    assert not (folder / "app" / "calls.contract.json").exists()
    assert run("check", "app/calls.py", cwd=folder).code == 0
    narrower = changed("tools/0/inputSchema/properties/size", {"enum": ["s"]})
    (folder / "shop.contract.json").write_text(text_of(contract(narrower)))
    assert run("check", "app/calls.py", cwd=folder).code == 1
    assert run("update", "app/calls.py", cwd=folder).code == 0
    assert run("check", "app/calls.py", cwd=folder).code == 0


def test_patterns_choose_the_calls(folder: Path) -> None:
    assert mirror(folder, "--exclude", "count*", "--exclude", "prompt *").code == 0
    text = module(folder).read_text()
    assert ("def count" in text, "advise" in text, "def order" in text) == (False, False, True)
    (folder / "shop.py").write_text(SHOP_SERVER.replace("def count", "def counts"))
    assert run("check", "app/calls.py", cwd=folder).code == 0


def test_a_project_checks_and_updates_its_modules(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.mcpgen]\ncalls = ["app/calls.py"]\n')
    assert run("check", cwd=project).code == 0
    (project / "shop.py").write_text(SMALLER)
    assert run("check", cwd=project).code == 1
    assert run("check", "--offline", cwd=project).code == 0
    assert run("update", cwd=project).code == 0
    assert run("check", cwd=project).code == 0


@pytest.mark.parametrize(
    ("option", "name"),
    [("--package", "a-b"), ("--package", "a import b"), ("--class", "x y"), ("--class", "Client")],
)
def test_a_name_that_is_none_or_taken_is_refused(option: str, name: str, folder: Path) -> None:
    (folder / "shop.contract.json").write_text(text_of(contract()))
    refused = mirror(folder, option, name, target="shop.contract.json")
    expected = {
        "--package": "#/package: expected a package as app.",
        "--class": "#/calls_class: expected the name of a class",
    }
    assert (refused.code, expected[option] in refused.err) == (2, True), refused.err
    assert not module(folder).exists()


def test_the_package_is_named_unless_there_is_one(folder: Path) -> None:
    (folder / "shop.contract.json").write_text(text_of(contract()))
    made = partial(mirror, folder, target="shop.contract.json")
    (folder / "app" / "other").symlink_to(PACKAGE)
    refused = made()
    assert (refused.code, "--package" in refused.err, "other, protocol" in refused.err) == (
        *(2, True, True),
    )
    assert made("--package", "app.other").code == 0
    assert "from app.other import Client" in module(folder).read_text()
    (folder / "app" / "other").unlink()
    (folder / "app" / "__init__.py").unlink()
    assert made("--force").code == 0
    assert "from protocol import Client" in module(folder).read_text()
    (folder / "app" / "protocol").unlink()
    refused = made("--force")
    assert (refused.code, "beside calls.py, got none" in refused.err) == (2, True), refused.err


def test_a_module_that_cannot_be_written_is_one_error(folder: Path) -> None:
    (folder / "shop.contract.json").write_text(text_of(contract()))
    words = ("mirror", "shop.contract.json", "--package", "app.protocol", "-o", "none/calls.py")
    ended = run(*words, cwd=folder)
    assert (ended.code, "none/calls.py: cannot be written: No such" in ended.err) == (2, True)


def test_a_file_that_is_there_is_not_overwritten(folder: Path) -> None:
    module(folder).write_text("mine = 1\n")
    refused = mirror(folder)
    assert (refused.code, "app/calls.py: expected a new file" in refused.err) == (2, True)
    assert module(folder).read_text() == "mine = 1\n"
    for command in ("check", "update"):
        ended = run(command, "app/calls.py", cwd=folder)
        assert ended.code == 2
        assert "expected a module of mcpgen mirror, got another file" in ended.err


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "{}",
        '{"package": "a b", "calls_class": "C", "contract": "c.json"}',
        '{"package": "a", "calls_class": "C", "contract": "c.json", "more": 1}',
    ],
)
def test_a_malformed_origin_is_refused(line: str, folder: Path) -> None:
    module(folder).write_text(f"# a\n# mcpgen mirror: {line}\n")
    ended = run("check", "app/calls.py", cwd=folder)
    assert (ended.code, "app/calls.py#" in ended.err) == (2, True)


def test_texts_of_a_server_stay_texts(folder: Path) -> None:
    lists: Any = changed("tools/0/description", '""" + boom() + """\n# mcpgen mirror: {}')
    lists["tools"][1]["name"] = "x\nimport os"
    (folder / "shop.contract.json").write_text(text_of(contract(lists)))
    made = mirror(folder, "--class", "Calls", "--json", target="shop.contract.json")
    record = json.loads(made.out)
    assert (record["file"], record["class"]) == ("app/calls.py", "Calls")
    names = output_of("from app.calls import Calls; print(*dir(Calls))", cwd=folder).split()
    assert {"order", "x_import_os", "read_item"} <= {*names}
    assert run("check", "app/calls.py", cwd=folder).code == 0
