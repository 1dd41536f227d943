"""`mcpgen contract` on running servers and on files: what it writes, says and exits with."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

import mcpgen_runtime
from generator.command_line import Done, run, script_command
from generator.contract_surfaces import (
    CAPABILITIES,
    SHOP,
    SHOP_SERVER,
    SMALLER_SIZES,
    WHOLE_SIZES,
    changed,
    contract,
)
from mcpgen.contract.document import text_of
from mcpgen.project import server_lists

SMALLER = changed("tools/0/inputSchema/properties/size", {"enum": ["s", "m"]})
SECRET = "k-93xq7v"
FILE = "server.contract.json"
ALLOW = ("--allow", "contract.toml")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the server `shop`, a smaller one, and the contract of the first."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "shop.py").write_text(SHOP_SERVER)
    (folder / "smaller.py").write_text(SHOP_SERVER.replace(WHOLE_SIZES, SMALLER_SIZES))
    written = run("contract", "write", "shop:server", "-o", FILE, cwd=folder)
    revisions = ", ".join(reversed([*mcpgen_runtime.REVISIONS]))
    assert written == Done(0, f"wrote {FILE}: {revisions}\n", "asking shop:server ...\n")
    return folder


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with two contracts, `old.json` and `new.json`, of which the second is narrower."""
    (tmp_path / "old.json").write_text(text_of(contract()))
    (tmp_path / "new.json").write_text(text_of(contract(SMALLER)))
    return tmp_path


def diff(folder: Path, *words: str) -> Done:
    """The differences of the two contracts."""
    return run("contract", "diff", "old.json", "new.json", *words, cwd=folder)


def test_the_same_server_gives_the_same_bytes(shop: Path, tmp_path: Path) -> None:
    other = tmp_path / "again.json"
    assert run("contract", "write", script_command("shop.py"), "-o", other, cwd=shop).code == 0
    assert other.read_bytes() == (shop / FILE).read_bytes()


def test_a_contract_has_all_revisions_that_the_server_speaks(shop: Path) -> None:
    document = json.loads((shop / FILE).read_text())
    assert document["revisions"] == [*reversed([*mcpgen_runtime.REVISIONS])]
    assert "outputSchema" in document["tools"]["order"]
    assert "outputSchema" not in document["earlier"]["2024-11-05"]["tools"]["order"]


def test_a_server_that_takes_less_fails_with_a_value(shop: Path) -> None:
    done = run("contract", "check", "smaller:server", FILE, cwd=shop)
    assert done.code == 1
    expected = "breaking: ARGUMENT_NARROWED: tool order: the argument size is narrower"
    assert done.out.startswith(expected)
    assert 'for example "l"' in done.out


def test_a_server_that_does_not_start_exits_with_two(shop: Path) -> None:
    done = run("contract", "check", script_command("nothing.py"), FILE, cwd=shop)
    assert done.code == 2
    assert "expected a server that answers" in done.err


def test_a_revision_that_the_server_lacks_exits_with_two(shop: Path) -> None:
    words = ("contract", "write", "shop:server", "-o", "x.json", "-r", "2020-01-01")
    done = run(*words, cwd=shop)
    assert done.code == 2
    assert "expected --revision of 2024-11-05" in done.err
    assert not (shop / "x.json").exists()


def test_a_secret_of_the_environment_is_masked(shop: Path, tmp_path: Path) -> None:
    entry = {"command": sys.executable, "args": ["shop.py"], "env": {"SHOP_KEY": SECRET}}
    (shop / "servers.json").write_text(json.dumps({"mcpServers": {"shop": entry}}))
    output = tmp_path / "masked.json"
    words = ("contract", "write", "servers.json#shop", "-o", output, "-r", "2025-06-18", "--json")
    record = {"file": f"{output}", "revisions": ["2025-06-18"]}
    assert json.loads(run(*words, cwd=shop).out) == record
    assert SECRET not in output.read_text()
    assert json.loads(output.read_text())["instructions"] == "Key: ***"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("--fail-on breaking", 1),
        ("--fail-on warning", 1),
        ("--fail-on any", 1),
        ("--fail-on never", 0),
        ("--include order", 1),
        ("--include 'tool o*'", 1),
        ("--include plain", 0),
        ("--exclude order", 0),
        ("--exclude 'prompt *'", 1),
        ("--category callers", 1),
        ("--category models", 0),
        ("--category clients", 0),
    ],
)
def test_options_choose_what_fails(words: str, code: int, files: Path) -> None:
    assert diff(files, *shlex.split(words)).code == code


def test_a_compatible_change_does_not_fail(files: Path) -> None:
    assert run("contract", "diff", "new.json", "old.json", cwd=files).code == 0
    assert run("contract", "diff", "new.json", "old.json", "--fail-on", "any", cwd=files).code == 1


def test_an_allowed_change_is_shown_and_does_not_fail(files: Path) -> None:
    allow = "[[allow]]\nrule = 'ARGUMENT_NARROWED'\nitem = 'tool order'\nreason = 'Sold out.'\n"
    (files / "contract.toml").write_text(allow)
    done = diff(files, *ALLOW)
    assert done.code == 0
    assert "allowed: Sold out." in done.out
    assert done.out.endswith("1 change: 1 allowed\n")
    assert "| breaking (allowed) |" in diff(files, *ALLOW, "--format", "markdown").out
    assert json.loads(diff(files, *ALLOW, "--json").out)[0]["allowed"] == "Sold out."


@pytest.mark.parametrize(
    ("form", "part"),
    [
        ("json", '"example": "l"'),
        ("junit", 'tests="1" failures="1"'),
        ("sarif", '"ruleId": "ARGUMENT_NARROWED"'),
        ("sarif", '"uri": "new.json"'),
        (
            "markdown",
            "| breaking | ARGUMENT_NARROWED | tool order: the argument size is narrower |",
        ),
    ],
)
def test_a_report_has_each_form(files: Path, form: str, part: str) -> None:
    done = diff(files, "--format", form)
    assert part in done.out


def test_many_items_with_one_change_are_one_line(tmp_path: Path) -> None:
    many = [{"uri": f"shop://{number}", "name": "x"} for number in range(40)]
    (tmp_path / "old.json").write_text(text_of(contract({**SHOP, "resources": many})))
    (tmp_path / "new.json").write_text(text_of(contract({**SHOP, "resources": []})))
    done = diff(tmp_path)
    assert done.out.count("RESOURCE_REMOVED") == 1
    assert "  and resource shop://1, " in done.out
    assert "and 35 more" in done.out
    (tmp_path / "old.json").write_text(text_of(contract({**SHOP, "resources": many[:5]})))
    assert diff(tmp_path).out.count("RESOURCE_REMOVED") == 5
    (tmp_path / "old.json").write_text(text_of(contract({**SHOP, "resources": many})))
    assert len(json.loads(diff(tmp_path, "--json").out)) == 40


def commit(folder: Path, *names: str) -> None:
    """Commit the older contract under some names, in a new repository of git."""
    git = shutil.which("git")
    assert git is not None
    for name in names:
        shutil.copy(folder / "old.json", folder / name)
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for words in (("init", "-q"), ("add", *names), (*identity, "commit", "-qm", "a")):
        subprocess.run([git, *words], cwd=folder, check=True)


def test_one_file_is_compared_with_what_it_was_in_a_commit(files: Path) -> None:
    commit(files, FILE)
    shutil.copy(files / "new.json", files / FILE)
    done = run("contract", "diff", FILE, "--against", "HEAD", cwd=files)
    assert done.code == 1
    assert "ARGUMENT_NARROWED" in done.out
    refused = run("contract", "diff", FILE, "--against", "nowhere", cwd=files)
    assert (refused.code, "--against nowhere: git knows no such commit" in refused.err) == (2, True)
    both = run("contract", "diff", FILE, "new.json", "--against", "HEAD", cwd=files)
    assert both.code == 1
    assert both.out.splitlines()[0] == f"{FILE}:"
    assert both.out.splitlines()[-2:] == ["new.json:", "nothing changed"]


def test_a_report_is_about_all_files(files: Path) -> None:
    commit(files, "a.json", "b.json")
    shutil.copy(files / "new.json", files / "a.json")
    shutil.copy(files / "new.json", files / "b.json")
    done = run(
        "contract", "diff", "a.json", "b.json", "--against", "HEAD", "--format", "junit", cwd=files
    )
    suite = ElementTree.fromstring(done.out)
    assert [case.get("file") for case in suite] == ["a.json", "b.json"]
    words = ("--against", "HEAD", "--format", "markdown")
    one = run("contract", "diff", "a.json", *words, cwd=files).out
    both = run("contract", "diff", "a.json", "b.json", *words, cwd=files).out
    assert one.startswith("1 change: 1 breaking.\n\n|")
    assert both == f"## a.json\n\n{one}\n## b.json\n\n{one}"


@pytest.fixture(scope="module")
def hooks(root: Path) -> dict[str, Any]:
    """The hooks for pre-commit by their ids."""
    rows = yaml.safe_load((root / ".pre-commit-hooks.yaml").read_text())
    return {row["id"]: row for row in rows}


def test_the_hook_for_pre_commit_compares_the_files_of_a_commit(
    hooks: dict[str, Any], files: Path
) -> None:
    hook = hooks["mcpgen-contract-diff"]
    assert re.search(hook["files"], FILE) is not None
    commit(files, FILE)
    _, *entry = hook["entry"].split()
    assert run(*entry, FILE, cwd=files).code == 0
    shutil.copy(files / "new.json", files / FILE)
    assert run(*entry, FILE, cwd=files).code == 1


def test_the_hook_for_pre_commit_asks_a_server(hooks: dict[str, Any], shop: Path) -> None:
    _, *entry = hooks["mcpgen-contract-check"]["entry"].split()
    assert run(*entry, script_command("shop.py"), FILE, cwd=shop).code == 0
    assert run(*entry, script_command("smaller.py"), FILE, cwd=shop).code == 1


def test_a_contract_of_two_revisions_is_read_back(
    tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    old = contract(SHOP, CAPABILITIES, "2025-11-25", "2025-06-18")
    newest, _ = contract(SMALLER, {}, "2025-11-25", "2025-06-18").surfaces
    both = type(old)("shop", (newest, old.surfaces[1]))
    assert text_of(both) == snapshot
    (tmp_path / "old.json").write_text(text_of(both))
    (tmp_path / "new.json").write_text(text_of(both))
    assert json.loads((tmp_path / "old.json").read_text())["earlier"].keys() == {"2025-06-18"}
    assert diff(tmp_path, "--fail-on", "any").code == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", "expected a file of mcpgen contract write"),
        ('{"contract": 2}', "#/contract: expected 1, got 2"),
        ('{"contract": 1, "revisions": []}', "#/revisions: expected revisions, newest first"),
        ('{"contract": 1, "revisions": [1]}', "#/revisions: expected revisions, newest first"),
        ('{"contract": 1, "revisions": {"a": 1}}', "#/revisions: expected revisions, newest first"),
        ('{"contract": 1, "revisions": ["a"], "tools": {"b": 1}}', "#/tools/b: expected an object"),
        ("[]", "expected a file of mcpgen contract write, got something else"),
        ("[", "expected JSON"),
    ],
)
def test_a_file_that_is_no_contract_exits_with_two(text: str, expected: str, files: Path) -> None:
    (files / "new.json").write_text(text)
    done = diff(files)
    assert done.code == 2
    assert expected in done.err


def test_an_entry_that_was_changed_by_hand_is_refused(files: Path) -> None:
    text = (files / "new.json").read_text()
    (files / "new.json").write_text(text.replace("Orders an item.", "Steals an item."))
    done = diff(files)
    assert done.code == 2
    assert "#/tools/order: expected the digest sha256:" in done.err
    assert "got an entry changed by hand" in done.err


def test_a_contract_has_the_lists_that_a_project_starts_from(tmp_path: Path) -> None:
    file = tmp_path / FILE
    file.write_text(text_of(contract()))
    lists, expected = server_lists.read_file(file), contract().surfaces[0].lists
    assert not lists.notes
    assert lists.instructions == expected.instructions
    for kind, key in server_lists.KINDS.items():
        ordered = sorted(expected.entries[kind], key=lambda entry: str(entry[key]))
        assert [*lists.entries[kind]] == ordered


@pytest.mark.parametrize("option", [("--json",), ("--format", "json")])
def test_the_rules_are_listed(option: tuple[str, ...]) -> None:
    rows = json.loads(run("contract", "rules", *option).out)
    expected = {"rule": "TOOL_REMOVED", "severity": "breaking", "category": "callers"}
    assert expected.items() <= rows[0].items()
    assert "\nTOOL_REMOVED " in run("contract", "rules").out
