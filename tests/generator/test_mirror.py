"""The mirror of a server: its module, and what hostile lists cannot put into it."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from mcpgen.errors import MirrorError, OutputError
from mcpgen.project import mirror as mirrors
from mcpgen.project import server_lists, writing
from mcpgen.project import skeleton as projects
from mcpgen.project.mirror import Limits, Snapshot
from mcpgen.project.server_lists import ServerLists, parse
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

FORECAST = {
    "name": "forecast",
    "description": "Weather for a city.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Name of the city."},
            "days": {"type": "integer", "default": 3},
        },
        "required": ["city"],
    },
    "outputSchema": {
        "type": "object",
        "properties": {"degrees": {"type": "number"}},
        "required": ["degrees"],
    },
}
WEATHER = {
    "tools": [FORECAST],
    "resources": [{"uri": "weather://now", "name": "now"}],
    "resourceTemplates": [{"uriTemplate": "weather://{city}/{+day}", "name": "day"}],
    "prompts": [
        {
            "name": "report",
            "arguments": [{"name": "style"}, {"name": "city", "required": True}],
        }
    ],
}


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


def texts(snapshot: Snapshot) -> Iterator[str]:
    """All Python that is written for a mirror: its module, and the user's files."""
    mirror = mirrors.build(snapshot, "protocol")
    yield mirrors.module_text(mirror)
    for side in ("server", "client"):
        project = Project("weather", side, ("2026-07-28",), mirror=toml("x"))
        for path, text in projects.user_files(project, mirror).items():
            if path.endswith(".py"):
                yield text


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
    for source in texts(snapshot_of(attacked_lists(text))):
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


def test_files_that_are_there_already_are_not_written_again(tmp_path: Path) -> None:
    files = {"a.py": "a\n", "b.py": "b\n"}
    assert writing.write_files(tmp_path / "own", files)
    assert not writing.write_files(tmp_path / "own", files)
    assert writing.write_files(tmp_path / "own", {**files, "b.py": "c\n"})
    assert (tmp_path / "own" / "b.py").read_text() == "c\n"


@pytest.mark.parametrize(("length", "kept"), [(500, "x" * 500), (501, "x" * 500 + "...")])
def test_a_long_description_is_cut(length: int, kept: str) -> None:
    tool = {**FORECAST, "description": "x" * length}
    mirror = mirrors.build(snapshot_of({"tools": [tool]}), "protocol")
    tree = ast.parse(mirrors.module_text(mirror))
    methods = [each for each in ast.walk(tree) if isinstance(each, ast.AsyncFunctionDef)]
    described = [ast.get_docstring(each) or "" for each in methods if each.name == "forecast"]
    assert {"".join(text.split()) for text in described if "x" in text} == {kept}


def test_names_are_the_same_whatever_the_order_of_the_lists() -> None:
    tools = [{**FORECAST, "name": name} for name in ("get_x", "get-x", "get.x")]
    for order in (tools, tools[::-1]):
        mirror = mirrors.build(snapshot_of({"tools": order}), "protocol")
        assert [tool.name for tool in mirror.tools] == [tool["name"] for tool in order]
        methods = {tool.name: tool.method for tool in mirror.tools}
        assert methods == {"get-x": "get_x", "get.x": "get_x2", "get_x": "get_x3"}


def test_tools_whose_names_collide_are_told_apart_and_named() -> None:
    tools = [{**FORECAST, "name": name} for name in ("get-x", "get.x", "get_x")]
    mirror = mirrors.build(snapshot_of({"tools": tools}), "protocol")
    assert [tool.method for tool in mirror.tools] == ["get_x", "get_x2", "get_x3"]
    assert mirror.notes == (
        "'get.x' is get_x2: get_x is another one",
        "'get_x' is get_x3: get_x is another one",
    )


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
    snapshot = mirrors.read(tmp_path)
    assert (snapshot.lists.document(), snapshot.limits) == (written.lists.document(), limits)
    mirrors.refuse_edited(tmp_path, snapshot, {mirrors.MODULE: "new"})
    (tmp_path / mirrors.MODULE).write_text("module")
    mirrors.refuse_edited(tmp_path, snapshot, {mirrors.MODULE: "new"})
    (tmp_path / mirrors.MODULE).write_text("mine")
    with pytest.raises(OutputError, match="edited by hand"):
        mirrors.refuse_edited(tmp_path, snapshot, {mirrors.MODULE: "new"})


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"lists": {"tools": []}},
        {"lists": {"tools": []}, "absent": {}, "calls_class": "x: import os"},
        {"lists": {"tools": 1}, "absent": {}, "calls_class": "Weather"},
    ],
)
def test_a_snapshot_that_mcpgen_did_not_write_is_refused(document: Any, tmp_path: Path) -> None:
    (tmp_path / mirrors.DATA).write_text(json.dumps(document))
    with pytest.raises(MirrorError):
        mirrors.read(tmp_path)


def test_a_missing_snapshot_is_an_error_of_one_line(tmp_path: Path) -> None:
    with pytest.raises(MirrorError, match=r"mirror\.json#: expected a readable file"):
        mirrors.read(tmp_path)


@pytest.mark.parametrize(
    ("document", "error"),
    [
        ("text", "#: expected an object with tools, resources, resourceTemplates, prompts, or an"),
        ({"tool": []}, "got an object"),
        ({"tools": {}}, "#/tools: expected an array, got an object"),
        ({"tools": [1]}, "#/tools/0: expected an object, got a number or boolean"),
        ({"tools": [{}]}, "#/tools/0/name: expected a name of 1 to 200 characters, got null"),
        ({"tools": [{"name": "x" * 201}]}, "got a string of 201 characters"),
        ({"resources": [{"name": "x"}]}, "#/resources/0/uri: expected a uri of 1 to 2000"),
        ([[2**70]], "expected a number that fits 64 bits"),
    ],
)
def test_lists_that_are_nonsense_are_refused_with_their_place(document: Any, error: str) -> None:
    with pytest.raises(MirrorError) as raised:
        parse(document, "tools.json")
    assert error in str(raised.value)


@pytest.mark.parametrize(
    "document", [{"jsonrpc": "2.0", "id": 1, "result": {"tools": [FORECAST]}}, [FORECAST]]
)
def test_a_response_and_an_array_of_tools_are_lists_too(document: Any) -> None:
    assert parse(document, "x").entries == parse({"tools": [FORECAST]}, "x").entries


def test_optional_members_of_a_wrong_type_are_absent() -> None:
    lists = parse(
        {
            "tools": [
                {
                    "name": "a",
                    "title": 1,
                    "inputSchema": [],
                    "annotations": {"readOnlyHint": "yes", "destructiveHint": False, "x": 1},
                },
                {"name": "a"},
            ],
            "prompts": [{"name": "p", "arguments": [1, {"name": 2}, {"name": "q"}, {"name": "q"}]}],
        },
        "x",
    )
    assert lists.entries["tools"] == ({"name": "a", "annotations": {"destructiveHint": False}},)
    assert lists.entries["prompts"][0]["arguments"] == [{"name": "q"}]
    assert "/tools/1: 'a' comes twice: the first counts" in lists.notes
    assert len(lists.notes) == 9


TEXTS: tuple[list[Any], list[Any]] = (["x", ""], [1, None, ["x"]])
MEMBERS: dict[str, dict[str, tuple[list[Any], list[Any]]]] = {
    "tools": {
        **dict.fromkeys(("title", "description"), TEXTS),
        **dict.fromkeys(("inputSchema", "outputSchema", "_meta"), ([{}], [[], "x", None])),
        "annotations": ([{"readOnlyHint": True, "title": "t"}], [[], None]),
        "execution": ([{"taskSupport": "optional"}], ["x"]),
        "icons": ([[{"src": "x", "sizes": ["1x1"], "theme": "dark"}]], [{}, None]),
        "size": ([], [1]),
    },
    "resources": {
        **dict.fromkeys(("name", "title", "description", "mimeType"), TEXTS),
        "size": ([0, 1, 2**40], [-1, True, 1.0, "1"]),
        "annotations": (
            [{"priority": value} for value in (0, 0.5, 1)]
            + [{"audience": roles} for roles in ([], ["user", "assistant"])]
            + [{"lastModified": "2025-01-01"}],
            [],
        ),
        "inputSchema": ([], [{}]),
    },
    "resourceTemplates": {"mimeType": TEXTS, "size": ([], [1])},
    "prompts": {
        "arguments": ([[{"name": "a", "required": True, "title": "t"}], []], ["x", {}]),
        "title": TEXTS,
    },
}


@pytest.mark.parametrize(
    ("kind", "member", "kept", "value"),
    [
        (kind, member, kept, value)
        for kind, members in MEMBERS.items()
        for member, both in members.items()
        for kept, values in zip((True, False), both, strict=True)
        for value in values
    ],
)
def test_a_member_is_kept_if_it_is_as_specified(
    kind: str, member: str, kept: bool, value: Any
) -> None:
    entry = {server_lists.KINDS[kind]: "x", member: value}
    lists = parse({kind: [entry]}, "x")
    [only] = lists.entries[kind]
    assert only.get(member, "absent") == (value if kept else "absent")
    places = [note.partition(":")[0] for note in lists.notes]
    assert places == ([] if kept else [f"/{kind}/0/{member}"])


@pytest.mark.parametrize(
    ("member", "value"),
    [
        *(("priority", value) for value in (-0.1, 1.1, True, "1")),
        *(("audience", value) for value in (["root"], "user")),
        ("lastModified", 5),
    ],
)
def test_an_annotation_that_is_not_as_specified_is_absent(member: str, value: Any) -> None:
    lists = parse({"resources": [{"uri": "x", "annotations": {member: value}}]}, "x")
    assert lists.entries["resources"] == ({"uri": "x", "annotations": {}},)
    assert lists.notes == (f"/resources/0/annotations/{member}: left out: not as specified",)


@pytest.mark.parametrize("theme", ["light", "dark", "blue"])
@pytest.mark.parametrize("sizes", [["1x1"], [], [1], "1x1"])
def test_an_icon_has_a_source_and_what_fits(theme: str, sizes: Any) -> None:
    icon = {"src": "x", "theme": theme, "sizes": sizes}
    tool = {"name": "a", "icons": [icon, {"theme": "dark"}, 5]}
    lists = parse([tool], "x")
    fitting = {"src": "x"}
    fitting |= {"theme": theme} if theme != "blue" else {}
    fitting |= {"sizes": sizes} if sizes in (["1x1"], []) else {}
    assert lists.entries["tools"][0]["icons"] == [fitting]
    assert len(lists.notes) == 2 + len(icon) - len(fitting)


@pytest.mark.parametrize(
    ("size", "is_cut"), [(server_lists.MAX_TEXT, False), (server_lists.MAX_TEXT + 1, True)]
)
def test_a_long_text_is_cut(size: int, is_cut: bool) -> None:
    lists = parse([{"name": "a", "description": "x" * size}], "x")
    text = lists.entries["tools"][0]["description"]
    assert text == "x" * server_lists.MAX_TEXT + "..." * is_cut
    cut = (f"/tools/0/description: cut after {server_lists.MAX_TEXT} characters",)
    assert lists.notes == (cut if is_cut else ())


@pytest.mark.parametrize(("kind", "longest"), [("tools", 200), ("resources", 2000)])
def test_a_name_has_a_greatest_length(kind: str, longest: int) -> None:
    key = server_lists.KINDS[kind]
    assert parse({kind: [{key: "x" * longest}]}, "x").entries[kind]
    for size in (0, longest + 1):
        with pytest.raises(MirrorError, match=f"a {key} of 1 to {longest} characters"):
            parse({kind: [{key: "x" * size}]}, "x")


@pytest.mark.parametrize("more", [{}, {"instructions": "Ask for a city."}])
def test_the_document_of_lists_holds_what_was_read(more: dict[str, str]) -> None:
    document = parse({**WEATHER, **more}, "x").document()
    assert {kind: entries for kind, entries in document.items() if entries} == {**WEATHER, **more}


def test_changes_name_what_is_new_gone_or_other() -> None:
    old = parse(WEATHER, "x")
    other = {**FORECAST, "outputSchema": {"type": "object"}, "title": "Forecast"}
    new = parse({"tools": [other, {"name": "rain"}], "prompts": WEATHER["prompts"]}, "x")
    assert server_lists.changes(old, new) == [
        "changed: tool forecast: result, title",
        "new: tool rain",
        "gone: resource weather://now",
        "gone: resource template weather://{city}/{+day}",
    ]
    assert server_lists.changes(old, old) == []


def test_changes_name_another_order_and_other_instructions() -> None:
    tools = [{**FORECAST, "name": name} for name in ("a", "b")]
    old = parse({"tools": tools}, "x")
    new = parse({"tools": tools[::-1], "instructions": "Ask b."}, "x")
    assert server_lists.changes(old, new) == ["changed: order of tools", "changed: instructions"]


def test_changes_back_are_the_opposite() -> None:
    old, new = parse(WEATHER, "x"), ServerLists(dict.fromkeys(server_lists.KINDS, ()))
    gone = [line.removeprefix("gone: ") for line in server_lists.changes(old, new)]
    assert [line.removeprefix("new: ") for line in server_lists.changes(new, old)] == gone


def test_a_snapshot_is_json_that_people_can_read() -> None:
    text = snapshot_of({"tools": []}, Limits((), {"prompts": (), "tools": ("a",)})).text("")
    assert text.startswith('{\n  "module": "')
    assert '\n  "unchecked": [],\n  "absent": {\n    "tools": [\n      "a"\n    ]\n  },\n' in text
    assert text.endswith("\n}\n")


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"absent": []}, "#: expected a file of mcpgen's, got another one"),
        ({"calls_class": 5}, "#: expected a file of mcpgen's, got another one"),
        ({"calls_class": "a"}, "#/calls_class: expected the name of a class, got a"),
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
    ("lists", "absent", "names", "expands"),
    [
        ({}, {}, "ABC", False),
        ({"tools": [FORECAST]}, {}, "ABC, abstractmethod", False),
        ({"tools": [FORECAST]}, {"tools": ["forecast"]}, "ABC", False),
        ({"prompts": [PROMPT]}, {}, "ABC, abstractmethod", False),
        ({"prompts": [PROMPT]}, {"prompts": ["report"]}, "ABC", False),
        ({"resources": [RESOURCE]}, {}, "ABC, abstractmethod", False),
        ({"resources": [RESOURCE]}, {"resources": ["x:y"]}, "ABC", False),
        ({"resourceTemplates": [DAY]}, {}, "ABC, abstractmethod", True),
        ({"resourceTemplates": [DAY]}, {"resourceTemplates": ["x:{day}"]}, "ABC", True),
        ({"resourceTemplates": [{"uriTemplate": "x:{class}"}]}, {}, "ABC", False),
    ],
)
def test_a_module_imports_what_its_items_need(
    lists: dict[str, Any], absent: dict[str, Any], names: str, expands: bool
) -> None:
    mirror = mirror_of(absent=absent, **lists)
    assert (mirror.abc_imports, mirror.expands) == (names, expands)


NO_SAMPLE = {**FORECAST, "name": "deep", "inputSchema": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
    ("tools", "absent", "name", "words"),
    [
        ([FORECAST], {}, "forecast", "city='text'"),
        ([FORECAST], {"tools": ["forecast"]}, "", ""),
        ([NO_SAMPLE, FORECAST], {}, "forecast", "city='text'"),
        ([{"name": "odd"}], {}, "", ""),
        (
            [
                {
                    **FORECAST,
                    "outputSchema": {
                        "type": "object",
                        "properties": {"a": {"$ref": "#"}},
                        "required": ["a"],
                    },
                }
            ],
            {},
            "",
            "",
        ),
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
    ("entry", "method"),
    [
        ({"uri": "x:y"}, "read_x_y"),
        ({"uri": "x:y", "name": "the now"}, "read_the_now"),
        ({"uri": "x:y", "name": ""}, "read_x_y"),
    ],
)
def test_a_resource_is_named_by_its_name_or_uri(entry: dict[str, Any], method: str) -> None:
    mirror = mirror_of(resources=[entry])
    [row] = mirror.resources
    assert (row.method, row.uri, row.arguments, row.callable) == (method, "x:y", (), True)
    assert (mirror.registered_resources, mirror.registered_templates) == (["x:y"], [])


def test_required_arguments_of_a_prompt_come_first() -> None:
    rows = [
        {"name": "style", "description": "How it's written."},
        {"name": "city", "required": True},
        {"name": "day", "required": True, "description": "When."},
    ]
    mirror = mirror_of(prompts=[{"name": "report", "arguments": rows}])
    [row] = mirror.prompts
    assert [f"{each.annotated}{each.default}" for each in row.arguments] == [
        "str",
        "Annotated[str, Meta(description='When.')]",
        'Annotated[str | None, Meta(description="How it\'s written.")] = None',
    ]
    assert [each.wire for each in row.listed] == ["style", "city", "day"]
    assert (row.method, mirror.registered_prompts) == ("report_prompt", ["report"])
    assert "Annotated" in mirror.typing_imports.split(", ")
    assert "Meta" in mirror.msgspec_imports.split(", ")


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
    [tool] = mirror.tools
    assert (tool.output, tool.return_type) == ("ToolOutput", "models.CallToolResult")
    assert (tool.handler_output, tool.handler_return_type) == (
        "mirror.ToolOutput",
        "models.CallToolResult",
    )


def test_a_tool_with_types_names_them_from_other_modules() -> None:
    [tool] = mirror_of(tools=[FORECAST]).tools
    assert (tool.output, tool.return_type) == ("ForecastResult", "ForecastResult")
    assert tool.handler_arguments == "mirror.ForecastArguments"
    assert (tool.handler_output, tool.handler_return_type) == (
        "mirror.ForecastResult",
        "mirror.ForecastResult",
    )
    [odd] = mirror_of(tools=[{"name": "odd"}]).tools
    assert odd.handler_arguments == "dict[str, Any]"


@pytest.mark.parametrize(
    ("text", "shown"), [("  Says. ", "Says."), ("", "Call the tool"), (" ", "Call the tool")]
)
def test_a_tool_is_described_in_its_own_words(text: str, shown: str) -> None:
    [tool] = mirror_of(tools=[{**FORECAST, "description": text}]).tools
    assert tool.doc.startswith(f'"""{shown}')
