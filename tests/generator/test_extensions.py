"""Extensions: their schema files become modules beside a revision, or an error and no file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from generator.command_line import Done, run
from generator.diff_schemas import message
from generator.schemas import TEXT, fields_of, obj, ref
from mcpgen.model import schema_sources
from mcpgen.package import build_request, pipeline
from mcpgen.package.build_request import BuildRequest
from mcpgen.render.formatting import format_modules
from mcpgen.render.tree import Form
from mcpgen.schema import shipped_extensions

pytestmark = pytest.mark.costly

HAVING = "2026-07-28"
"""A revision whose capabilities have extensions."""
WITHOUT = "2025-06-18"


def write_schema(folder: Path, name: str = "ext.json", **definitions: Any) -> Path:
    """A schema file of these definitions, whose identifier is com.example/NAME."""
    path = folder / name
    text = f"Extension Identifier: com.example/{path.stem}"
    path.write_text(json.dumps({"description": text, "$defs": definitions}), encoding="utf-8")
    return path


def generate_types(folder: Path, *words: object, revision: str = HAVING) -> Done:
    """Generate the types of a revision with extensions into `pkg` of a folder."""
    options = [word for each in words for word in ("--extension", str(each))]
    return run("-q", "-r", revision, "--parts", "types", *options, "-o", str(folder / "pkg"))


ASK: dict[str, Any] = {"AskRequest": message("ask"), "AskResult": obj(text=TEXT)}


def files_of(
    *extensions: Path | str, revision: str = HAVING, form: Form = dict
) -> Mapping[str, str]:
    """The files of a package of all parts, as they are rendered."""
    named = build_request.named_extensions([str(each) for each in extensions])
    request = BuildRequest("pkg", schema_sources.by_name((revision,)), extensions=named)
    return pipeline.build(request, form=form)


def test_types_of_an_extension_have_members_of_the_revision_and_one_copy(tmp_path: Path) -> None:
    point = obj("x", x=TEXT)
    inner = {"anyOf": [TEXT, {"type": "array", "items": ref("__schema0")}]}
    joined = message("join", obj("value", value=ref("__schema0")))
    path = write_schema(
        tmp_path,
        AskRequest=message("ask", obj("p", p=point)),
        AskResult=obj("p", p=point),
        Point=point,
        JoinRequest={**joined, "$defs": {"__schema0": inner}},
        JoinResult=obj(text=TEXT),
    )
    models = files_of(path, form=format_modules)["r2026_07_28/ext/models.py"]
    parts = {part.partition("(")[0]: part for part in models.split("\n\n\nclass ")}
    assert '    meta: dict[str, Any] = field(name="_meta")' in parts["AskRequestParams"]
    assert '    result_type: str = always_sent("complete", name="resultType")' in parts["AskResult"]
    assert "    p: Point" in parts["AskRequestParams"]
    assert "    p: Point" in parts["AskResult"]
    assert "    value: Any" in parts["JoinRequestParams"]  # a definition that holds itself


def test_update_and_check_repeat_the_extensions_of_the_manifest(tmp_path: Path) -> None:
    path = write_schema(tmp_path, **ASK)
    assert generate_types(tmp_path, path).code == 0
    package = str(tmp_path / "pkg")
    assert run("check", package).code == 0
    write_schema(tmp_path, AskRequest=message("ask"), AskResult=obj(text=TEXT, more=TEXT))
    checked = run("check", package)
    assert (checked.code, "the schema changed: com.example/ext: its schema" in checked.out) == (
        1,
        True,
    )
    assert run("update", "-q", package).code == 0
    assert run("check", package).code == 0
    path.unlink()
    for command in ("update", "check"):
        assert "extension com.example/ext was made from" in run(command, package).err


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a definition of the revision, changed": (
        {**ASK, "Tool": obj("name", name=TEXT)},
        "/$defs/Tool: expected a definition that the revision does not have, or Tool as it has it",
    ),
    "the name of an inline type of the revision": (
        {**ASK, "CompleteResultCompletion": obj("x", x=TEXT)},
        "/$defs/CompleteResultCompletion: expected a name that no type of 2026-07-28 has",
    ),
    "a method of the revision": (
        {"AskRequest": message("tools/call"), "AskResult": obj()},
        '/$defs/AskRequest: expected a method that 2026-07-28 does not have, got "tools/call"',
    ),
    "a method twice": (
        {**ASK, "AgainRequest": message("ask"), "AgainResult": obj()},
        '/$defs/AgainRequest: expected a method of its own, got "ask", as AskRequest has',
    ),
    "a request of servers, where they send none": (
        {**ASK, "ServerRequest": {"anyOf": [ref("AskRequest")]}},
        '/$defs/AskRequest: expected no ServerRequest: 2026-07-28 has none, got "ask"',
    ),
    "params of no object": (
        {**ASK, "AskRequest": message("ask", TEXT)},
        "/$defs/AskRequest/properties/params: expected params that are an object with members",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_extension_is_an_error_with_its_place(tmp_path: Path, case: str) -> None:
    definitions, text = BAD[case]
    done = generate_types(tmp_path, write_schema(tmp_path, **definitions))
    assert done.code in (1, 2)
    assert "ext.json" in done.err
    assert text in done.err
    assert not (tmp_path / "pkg").exists()


def test_two_extensions_have_methods_of_their_own(tmp_path: Path) -> None:
    one, two = write_schema(tmp_path, "one.json", **ASK), write_schema(tmp_path, "two.json", **ASK)
    expected = "two.json#/$defs/AskRequest: expected a method that com.example/one does not have"
    assert expected in generate_types(tmp_path, one, two).err


def test_an_extension_is_beside_the_revisions_that_it_fits(tmp_path: Path) -> None:
    path = write_schema(tmp_path, Ask=obj(one=ref("InputRequest")), AskRequest=message("a/ask"))
    done = generate_types(tmp_path, path, revision=WITHOUT)
    assert 'expected a reference to a definition, #/$defs/<name>, got "#/$defs/Inp' in done.err
    assert not (tmp_path / "pkg").exists()
    words = ("-r", HAVING, "-r", WITHOUT, "--parts", "types", "--extension", path)
    done = run(*words, "-o", tmp_path / "pkg")
    assert f"ext.json: not beside {WITHOUT}: " in done.out, done
    assert [path.parent.name for path in tmp_path.glob("pkg/*/ext")] == ["r2026_07_28"]


TYPESCRIPT = """
// Extension Identifier: com.example/ask
import type { Result, ContentBlock, Error as Failure } from "./spec.types.js";

export interface Question { text: string; about?: ContentBlock; weight: number | null }
export interface AskRequest { method: "ask"; params: { question: Question; after?: Failure } }
export type AskResult = Result & { answer: string };
"""


def test_typescript_may_import_revision_types_under_own_names(tmp_path: Path) -> None:
    path = tmp_path / "ask.ts"
    path.write_text(TYPESCRIPT, encoding="utf-8")
    assert generate_types(tmp_path, path).err == ""
    models = (tmp_path / "pkg" / "r2026_07_28" / "ask" / "models.py").read_text("utf-8")
    assert "from ..models import ContentBlock, Error\n" in models
    assert "about: ContentBlock | None = None" in models
    assert "after: Error | None = None" in models
    assert "weight: int | float | None\n" in models
    assert "answer: str" in models.partition("class AskResult(")[2].partition("class ")[0]
    path.write_text(TYPESCRIPT.replace("ContentBlock", "ContentBlok"), encoding="utf-8")
    done = generate_types(tmp_path, path)
    assert "ask.ts:5:51: expected a type that this file declares" in done.err
    assert '"ContentBlok"' in done.err


def test_open_parts_of_an_extension_schema_are_noted(tmp_path: Path) -> None:
    empty = {"type": "object", "properties": {}, "additionalProperties": False}
    path = write_schema(
        tmp_path,
        AskRequest=message("ask", empty),
        PaintNotification=message("paint", obj(color=TEXT, never={"not": {}})),
    )
    done = generate_types(tmp_path, path)
    assert done.code == 0, done.err
    request = BuildRequest(
        "pkg",
        schema_sources.by_name((HAVING,)),
        extensions=build_request.named_extensions([str(path)]),
    )
    notes: list[str] = []
    files = pipeline.build(request, report=notes.append)
    never = "/$defs/PaintNotification/properties/params/properties/never"
    assert sorted(note.partition("#")[2] for note in notes) == [
        "/$defs/AskRequest/properties/params/additionalProperties: not checked",
        "/$defs/AskRequest: no type AskResult, taken as EmptyResult",
        f"{never}: a member that must be absent, left out",
    ]
    models = files["r2026_07_28/ext/models.py"]
    assert "never" not in models
    assert "params: RequestParams" in models


TASKS = "io.modelcontextprotocol/tasks"


def test_an_extension_with_a_name_needs_no_file(tmp_path: Path) -> None:
    assert generate_types(tmp_path, "tasks").code == 0
    record = json.loads((tmp_path / "pkg" / "mcpgen.json").read_text("utf-8"))
    assert [*record["extensions"]] == [TASKS]
    assert [*record["extensions"][TASKS]] == ["inputs"]
    for command in ("check", "update"):
        assert run("-q", command, str(tmp_path / "pkg")).code == 0
    record["extensions"][TASKS]["inputs"] = "0" * 64
    (tmp_path / "pkg" / "mcpgen.json").write_text(json.dumps(record), "utf-8")
    assert f"{TASKS}" in run("check", str(tmp_path / "pkg")).out


def test_types_alone_are_an_extension_where_the_file_says_so(tmp_path: Path) -> None:
    plain, with_ui = files_of(), files_of("ui")
    added = {path for path in with_ui if path not in plain}
    assert added == {f"r2026_07_28/ui/{name}.py" for name in ("__init__", "models")}
    assert plain["r2026_07_28/methods.py"] == with_ui["r2026_07_28/methods.py"]
    path = write_schema(tmp_path, Thing=obj(text=TEXT))
    path.write_text(path.read_text().replace("com.example/ext", "com.example/ext Messages: none"))
    assert "class Thing(" in files_of(path)["r2026_07_28/ext/models.py"]


def test_the_shipped_tasks_are_those_of_the_official_schema(spec: Path) -> None:
    official = spec / "extensions" / "tasks" / "schema.json"
    [row] = [row for row in shipped_extensions.entries() if row.name == "tasks"]
    assert hashlib.sha256(official.read_bytes()).hexdigest() == row.official
    ours, theirs = (
        fields_of(files_of(word)["r2026_07_28/tasks/models.py"])
        for word in ("tasks", f"{TASKS}={official}")
    )
    assert ours == theirs
