"""The mirror of a server: its module, and what hostile lists cannot put into it."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from generator.tables import table
from mcpgen.errors import MirrorError, OutputError
from mcpgen.project import mirror as mirrors
from mcpgen.project import server_lists
from mcpgen.project import skeleton as projects
from mcpgen.project.mirror import Limits, Snapshot
from mcpgen.project.server_lists import parse
from mcpgen.project.skeleton import Project, toml

pytestmark = pytest.mark.lengthy

ATTACKS = [
    '"""\nimport os; os.system("x")\n"""',
    "'''\nimport os\n'''",
    '\\"""; import os',
    "x\\",
    "# noqa\nimport os",
    "\u202eimport os\u2066",
    "\x00\x1b[31m\r\u2028import os\u2029",
    "{% raw %}{{ 7 * 7 }}{% endraw %}{# x #}",
    "lambda: __import__('os')",
    "class",
    "None",
    "self",
    "mcpgen_context",
    "\u0456mport",  # the first letter is Cyrillic
    "a" * 150,
    "''' + __import__('os').name + '''",
]
"""Texts that would be code if they were not written as literals, docstrings or names."""

WEATHER: dict[str, Any] = table("weather_lists")
FORECAST: dict[str, Any] = WEATHER["tools"][0]


def attacked_lists(text: str) -> dict[str, Any]:
    """Lists of a server that say a text wherever they can."""
    schema: dict[str, Any] = {
        "type": "object",
        "title": text,
        "description": text,
        "properties": {
            text: {"type": "string", "description": text, "default": text},
            "choice": {"enum": [text, "b"], "default": text},
            "inner": {"type": "object", "properties": {text: {"const": text}}, "required": [text]},
            "ref": {"$ref": f"#/$defs/{text}"},
            "lost": {"type": text},
            "pattern": {"type": "string", "pattern": text},
        },
        "required": [text, "inner"],
        "$defs": {text: {"type": "object", "properties": {"x": {"$ref": f"#/$defs/{text}"}}}},
    }
    item = {"title": text, "description": text, "mimeType": text}
    return {
        "tools": [{"name": text, "inputSchema": schema, "outputSchema": schema, **item}],
        "resources": [{"uri": text, "name": text, **item}],
        "resourceTemplates": [
            {"uriTemplate": f"x://{{{text}}}", "name": text, **item},
            {"uriTemplate": "x://{class}/{ctx}", "name": text, **item},
        ],
        "prompts": [
            {"name": text, "arguments": [{"name": text, "description": text}], **item},
            {"name": f"{text}2", "arguments": [{"name": "a", "description": text}], **item},
        ],
    }


def snapshot_of(document: object, limits: Limits | None = None) -> Snapshot:
    """The snapshot of a server with some lists."""
    return Snapshot(parse(document, "tools.json"), limits or Limits(), "Weather")


def code_in(text: str) -> set[str]:
    """Names that a module imports or calls, and names that a mirror has no use for."""
    code: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                code |= {name.name for name in names}
            case ast.ImportFrom(module=module):
                code.add(module or ".")
            case ast.Lambda():
                code.add("lambda")
            case ast.Name(id=("os" | "__import__") as name):
                code.add(name)
    return code


HARMLESS = {
    *("__future__", ".", "abc", "collections.abc", "importlib.resources", "json", "os", "typing"),
    *("msgspec", "msgspec.json", "uritemplate", "protocol", "argparse", "sys", "anyio", "pytest"),
    *("server", "serving", "client", "weather.server", "weather.client", "weather.protocol"),
    "weather.protocol.testing",
}


@pytest.mark.parametrize("text", ATTACKS, ids=range(len(ATTACKS)))
def test_no_text_of_a_server_becomes_code(text: str) -> None:
    mirror = mirrors.build(snapshot_of(attacked_lists(text)), "protocol")
    written = [mirrors.module_text(mirror)]
    for side in ("server", "client"):
        project = Project("weather", side, ("2026-07-28",), mirror=toml("x"))
        files = projects.user_files(project, mirror)
        written += [source for path, source in files.items() if path.endswith(".py")]
    for source in written:
        assert source.isascii()
        assert source.replace("\n", "").isprintable()
        compile(source, "<written>", "exec")
        assert code_in(source) <= HARMLESS


def test_all_attacks_together_are_one_module_whose_names_differ() -> None:
    lists: dict[str, list[Any]] = {kind: [] for kind in server_lists.KINDS}
    for text in ATTACKS:
        for kind, entries in attacked_lists(text).items():
            lists[kind] += entries
    snapshot = snapshot_of(lists)
    module = mirrors.module_text(mirrors.build(snapshot, "protocol"))
    for node in ast.parse(module).body:
        if isinstance(node, ast.ClassDef):
            methods = [each.name for each in node.body if isinstance(each, ast.AsyncFunctionDef)]
            assert len(methods) == len(set(methods))
    assert code_in(module) <= HARMLESS


def test_the_module_of_a_server_reads_as_expected(snapshot: SnapshotAssertion) -> None:
    mirror = mirrors.build(snapshot_of(WEATHER), "protocol")
    assert mirror.notes == ()
    assert mirrors.module_text(mirror) == snapshot


@pytest.mark.parametrize("side", ["server", "client"])
def test_the_user_files_for_a_mirror_read_as_expected(
    side: projects.Side, snapshot: SnapshotAssertion
) -> None:
    mirror = mirrors.build(snapshot_of(WEATHER), "protocol")
    project = Project("weather", side, ("2026-07-28",), mirror=toml("x"))
    files = projects.user_files(project, mirror)
    own = f"src/weather/{side}.py"
    assert (files[own], files[f"tests/test_{side}.py"]) == snapshot


def test_a_long_description_is_cut() -> None:
    tools = [{**FORECAST, "name": name, "description": name * 500} for name in ("x", "yx")]
    tree = ast.parse(mirrors.module_text(mirrors.build(snapshot_of({"tools": tools}), "protocol")))
    methods = [each for each in ast.walk(tree) if isinstance(each, ast.AsyncFunctionDef)]
    described = [ast.get_docstring(each) or "" for each in methods if each.name in ("x", "yx")]
    assert {"".join(text.split()) for text in described} == {"x" * 500, "yx" * 250 + "..."}


def test_tools_whose_names_collide_are_told_apart_in_any_order() -> None:
    tools = [{**FORECAST, "name": name} for name in ("get-x", "get.x", "get_x")]
    for order in (tools, tools[::-1]):
        mirror = mirrors.build(snapshot_of({"tools": order}), "protocol")
        assert [tool.name for tool in mirror.tools] == [tool["name"] for tool in order]
        methods = {tool.name: tool.method for tool in mirror.tools}
        assert methods == {"get-x": "get_x", "get.x": "get_x2", "get_x": "get_x3"}
        assert sorted(mirror.notes) == [
            "'get.x' is get_x2: get_x is another one",
            "'get_x' is get_x3: get_x is another one",
        ]


def test_a_tool_without_types_takes_a_dict_and_is_named() -> None:
    mirror = mirrors.build(snapshot_of({"tools": [{"name": "odd"}]}), "protocol")
    assert mirror.tools[0].fields is None
    assert mirror.notes == (
        "tool 'odd': its arguments are a dict: it has no schema that is an object",
    )
    module = mirrors.module_text(mirror)
    assert "async def odd(self, arguments: dict[str, Any], ctx: Context) -> ToolOutput:" in module
    assert "async def odd(self, arguments: Mapping[str, Any] | None = None)" in module


def test_items_that_cannot_be_registered_have_calls_alone() -> None:
    limits = Limits(("forecast",), {"prompts": ("report",)})
    mirror = mirrors.build(snapshot_of(WEATHER, limits), "protocol")
    module = mirrors.module_text(mirror)
    handlers, _, calls = module.partition("class ToolCallError")
    assert ("def report_prompt" in handlers, "def report_prompt" in calls) == (False, True)
    assert "add_tool(server, 0, handlers.forecast, ForecastArguments, False)" in handlers
    assert mirror.notes == (
        "prompts: 'report' cannot be registered; calls alone",
        "tool 'forecast' is registered without its schemas",
    )


def test_a_snapshot_is_read_as_it_was_written(tmp_path: Path) -> None:
    limits = Limits(("forecast",), {"prompts": ("report",)})
    written = snapshot_of(WEATHER, limits)
    (tmp_path / mirrors.DATA).write_text(written.text("module"))
    assert '\n  "calls_class": "Weather",\n' in written.text("module")
    snapshot = mirrors.read(tmp_path)
    assert (snapshot.lists.document(), snapshot.limits) == (written.lists.document(), limits)
    mirrors.refuse_edited(tmp_path, snapshot, {mirrors.MODULE: "new"})
    (tmp_path / mirrors.MODULE).write_text("module")
    mirrors.refuse_edited(tmp_path, snapshot, {mirrors.MODULE: "new"})
    (tmp_path / mirrors.MODULE).write_text("mine")
    with pytest.raises(OutputError, match="edited by hand"):
        mirrors.refuse_edited(tmp_path, snapshot, {mirrors.MODULE: "new"})


def test_a_missing_snapshot_is_an_error_of_one_line(tmp_path: Path) -> None:
    with pytest.raises(MirrorError, match=r"mirror\.json#: expected a readable file"):
        mirrors.read(tmp_path)


OTHER_FILE = "#: expected a file of mcpgen's, got another one"
NO_CLASS = "#/calls_class: expected the name of a class, got "


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"absent": []}, OTHER_FILE),
        ({"calls_class": 5}, OTHER_FILE),
        ({"calls_class": "a"}, f"{NO_CLASS}a"),
        ({"calls_class": "x: import os"}, f"{NO_CLASS}x: import os"),
        ({"lists": {"tools": 1}}, "#/tools: expected an array, got a number or boolean"),
        ({"lists": []}, None),
        ({"unchecked": None, "module": 5}, None),
    ],
)
def test_a_snapshot_has_its_members(
    changed: dict[str, Any], error: str | None, tmp_path: Path
) -> None:
    document = json.loads(snapshot_of(WEATHER).text("module")) | changed
    (tmp_path / mirrors.DATA).write_text(json.dumps(document))
    if error is None:
        snapshot = mirrors.read(tmp_path)
        assert (snapshot.limits.unchecked, snapshot.calls_class) == ((), "Weather")
        return
    with pytest.raises(MirrorError) as raised:
        mirrors.read(tmp_path)
    assert str(raised.value).endswith(error)


def mirror_of(*, absent: dict[str, Any] | None = None, **lists: list[Any]) -> mirrors.Mirror:
    """The mirror of some lists, without the tools if none are given."""
    return mirrors.build(snapshot_of({"tools": [], **lists}, Limits((), absent or {})), "protocol")


RESOURCE, PROMPT = {"uri": "x:y", "name": "now"}, {"name": "report"}
DAY = {"uriTemplate": "x:{day}", "name": "day"}


@pytest.mark.parametrize(
    ("lists", "absent"),
    [
        ({}, {}),
        ({"tools": [FORECAST]}, {}),
        ({"tools": [FORECAST]}, {"tools": ["forecast"]}),
        ({"prompts": [PROMPT]}, {}),
        ({"prompts": [PROMPT]}, {"prompts": ["report"]}),
        ({"resources": [RESOURCE]}, {}),
        ({"resources": [RESOURCE]}, {"resources": ["x:y"]}),
        ({"resourceTemplates": [DAY]}, {}),
        ({"resourceTemplates": [DAY]}, {"resourceTemplates": ["x:{day}"]}),
        ({"resourceTemplates": [{"uriTemplate": "x:{class}"}]}, {}),
    ],
)
def test_a_module_imports_what_its_items_need(
    lists: dict[str, Any], absent: dict[str, Any]
) -> None:
    tree = ast.parse(mirrors.module_text(mirror_of(absent=absent, **lists)))
    imports = [each for each in tree.body if isinstance(each, ast.Import | ast.ImportFrom)]
    used = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}
    for each in imports:
        if each.names[0].name != "annotations":
            assert {(name.asname or name.name).partition(".")[0] for name in each.names} <= used
    imported = {name.name for each in imports for name in each.names}
    assert imported >= {"abstractmethod", "uritemplate"} & used


ENDLESS = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}
NO_SAMPLE = {**FORECAST, "name": "deep", "inputSchema": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
    ("tools", "absent", "name", "words"),
    [
        ([FORECAST], {}, "forecast", "city='text'"),
        ([FORECAST], {"tools": ["forecast"]}, "", ""),
        ([NO_SAMPLE, FORECAST], {}, "forecast", "city='text'"),
        ([{"name": "odd"}], {}, "", ""),
        ([{**FORECAST, "outputSchema": ENDLESS}], {}, "", ""),
    ],
)
def test_an_example_is_a_tool_with_a_sample(
    tools: list[Any], absent: dict[str, Any], name: str, words: str
) -> None:
    mirror = mirror_of(absent=absent, tools=tools)
    assert mirror.example_words == words
    assert mirror.example_line == f"{name}: Stands for the tool of the server."
    wire = {"city": "text"} if name else {}
    assert (mirror.example_arguments, mirror.example_result) == (
        wire,
        {"degrees": 1.5} if name else {},
    )


@pytest.mark.parametrize(
    ("template", "arguments", "registered", "method"),
    [
        (DAY, ["day: str"], True, "read_day"),
        ({"uriTemplate": "x:{a}/{+b}/{a}"}, ["a: str", "b: str"], True, "read_a"),
        ({"uriTemplate": "x:{a}", "name": ""}, ["a: str"], True, "read_x_a"),
        ({"uriTemplate": "x:y"}, [], False, "read_x_y"),
        ({"uriTemplate": "x:{?q*}"}, [], False, "read_x_q"),
        ({"uriTemplate": "x:{a}{?q*}"}, [], False, "read_x_a_q"),
        ({"uriTemplate": "x:{ctx}"}, [], False, "read_x_ctx"),
        ({"uriTemplate": "x:{a}{class}"}, [], False, "read_x_a_class"),
    ],
)
def test_a_template_takes_its_variables(
    template: dict[str, Any], arguments: list[str], registered: bool, method: str
) -> None:
    mirror = mirror_of(resourceTemplates=[template])
    [row] = mirror.resources
    assert [f"{each.name}: {each.type}{each.default}" for each in row.arguments] == arguments
    assert (row.registered, row.callable, row.method) == (registered, registered, method)
    uri = template["uriTemplate"]
    note = f"resource template {uri!r} has variables that are no parameters"
    assert mirror.notes == (() if registered else (note,))
    assert mirror.registered_templates == ([uri] if registered else [])
    assert mirror.registered_resources == []


@pytest.mark.parametrize(
    ("name", "is_taken"),
    [("city", True), ("a1_b", True), ("a-b", False), ("1a", False), ("", False)]
    + [(name, False) for name in ("class", "ctx", "handlers", "server", "\xe9")],
)
def test_a_prompt_is_registered_if_its_arguments_are_names(name: str, is_taken: bool) -> None:
    assert mirrors.is_parameter(name) is is_taken
    arguments = [{"name": "first"}, {"name": name}] if name else []
    mirror = mirror_of(prompts=[{"name": "report", "arguments": arguments}])
    assert mirror.prompts[0].registered is (is_taken or not name)
    assert "Annotated" not in mirror.typing_imports


@pytest.mark.parametrize(
    ("name", "method"),
    [("report", "report_prompt"), ("report_prompt", "report_prompt"), ("_prompt", "prompt_prompt")],
)
def test_methods_of_prompts_end_in_prompt_once(name: str, method: str) -> None:
    assert mirror_of(prompts=[{"name": name}]).prompts[0].method == method


def test_a_result_without_a_type_is_named() -> None:
    mirror = mirror_of(tools=[{**FORECAST, "outputSchema": {"type": "array"}}])
    assert mirror.notes == (
        'tool \'forecast\': its result has no type: its schema does not say "type": "object"',
    )


@pytest.mark.parametrize(
    ("text", "shown"), [("  Says. ", "Says."), ("", "Call the tool"), (" ", "Call the tool")]
)
def test_a_tool_is_described_in_its_own_words(text: str, shown: str) -> None:
    [tool] = mirror_of(tools=[{**FORECAST, "description": text}]).tools
    assert tool.doc.startswith(f'"""{shown}')
