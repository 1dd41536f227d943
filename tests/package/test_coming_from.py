"""docs/coming-from.md and docs/features.md: the examples run, and the tables say what is so."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
import types
from pathlib import Path
from typing import Any

import httpx2
import pytest

import mcpgen_runtime
from documents import ROOT, examples, tables_of
from kit.live import handlers_with
from kit.respondent import accept_result
from kit.wire import ALL
from mcpgen_runtime import RemoteError, connect
from mcpgen_runtime.testing import connected

COMING_FROM = ROOT / "docs" / "coming-from.md"
FEATURES = ROOT / "docs" / "features.md"
LIBRARY = ("tools", "resources", "prompts", "context", "middleware", "composition")
TESTS_OF_FEATURES: dict[str, str] = tomllib.loads(
    (ROOT / "tests" / "package" / "features.toml").read_text("utf-8")
)
NOT_COUNTED = re.compile(r"\s*(#.*)?|server = Server\(.*\)")

TOOLS: list[tuple[str, dict[str, Any], Any]] = [
    ("due", {"days": 3, "extensions": "2"}, 31),
    ("find", {"words": "tides"}, [{"title": "tides", "shelf": None}]),
    ("fine", {"days": 3}, 6),
    ("scan", {"pages": 1}, 1),
    ("lend", {"title": "Tides"}, {"title": "Tides", "days": 14, "reminder": True}),
    ("reserve", {"title": "Tides"}, {"title": "Tides", "branch": "main"}),
    ("label", {"title": "Tides"}, {"title": "Tides", "size": 12, "paper": "white"}),
    ("newest", {"shelf": "a", "limit": 1}, ["a0"]),
    ("book", {"number": "1"}, {"title": "Tides", "year": 1999, "lent": False}),
    ("hours", {}, {"open": True}),
    ("report", {}, {"late": 3}),
    ("average", {"days": 3, "books": 2}, 1.5),
    ("inventory", {"shelf": "a"}, {"shelf": "a"}),
    ("count", {"shelf": "abc"}, 3),
]
CONTEXT: list[tuple[str, dict[str, Any], Any]] = [
    ("readers", {}, ["Ann", "Ben"]),
    ("shelve", {"titles": ["a", "b"]}, {"count": 2, "done": ["A", "B"]}),
    ("mean", {"days": [1, 2]}, {"mean": 1.5, "count": 2}),
    ("mean", {"days": []}, {"error": "no loans"}),
]
CONTEXT_TEXTS: list[tuple[str, dict[str, Any], str]] = [
    ("card", {}, "Ann, 30"),
    ("greet", {}, "Hello Ann"),
    ("browser", {}, "no HTTP"),
    ("fetch", {"title": "Tides"}, "reader 42 fetches Tides from https://library.example"),
    ("give_back", {"number": "1"}, "1: ['open', 'readers'], ['open', 'loans']"),
    ("ask_desk", {"question": "where"}, "where: open"),
]
RESOURCES = [
    ("library://welcome", "Come in."),
    ("library://rules", '{"days":14,"books":5}'),
    ("library://state", '{"open":true}'),
    ("library://readers", '["Ann"]'),
    ("library://oslo/now", '{"branch":"Oslo","visitors":22}'),
    ("library://oslo/a/size", '{"branch":"oslo","shelf":"a","books":120}'),
    ("books://7", "book 7"),
    ("shelves://a/b/c", "shelf a/b/c"),
    ("plans://1/a/b/plan.svg", '{"floor":"1","path":"a/b/plan.svg"}'),
    ("loans://ann?form=xml", "<reader name='ann' />"),
    ("search://tides?limit=3", '{"words":"tides","page":1,"limit":3}'),
    ("find://isbn/9", '{"isbn":"9"}'),
    ("find://title/tides", '{"title":"tides"}'),
]


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Any:
    """The server of one section, in a module of its own that has our package as `pkg`."""
    name = f"library_{request.param}"
    module = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "pkg", mcpgen_runtime)
    exec(compile(examples()[f"{name}.py"], f"{name}.py", "exec"), module.__dict__)
    return module


def of(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("library", [name], indirect=True)


@of("tools")
async def test_the_tools_do_what_they_say(
    library: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cover.png").write_bytes(b"dot")
    async with connected(library.server) as pair:
        for name, arguments, expected in TOOLS:
            assert (await pair.client.call_tool(name, arguments)).data == expected, name
        images: Any = await pair.client.call_tool("covers")
        assert [block.type for block in images.content] == ["image", "text"]
        failed: Any = await pair.client.call_tool("average", {"days": 1, "books": 0})
        assert (failed.is_error, failed.content[0].text) == (True, "no books were lent")
        listed = {tool.name: tool for tool in await pair.client.list_tools()}
    assert "name" not in listed["my_loans"].input_schema["properties"]
    assert not {"discard", "old"} & listed.keys()
    described = listed["lend"].input_schema["properties"]["days"]
    assert described == {"type": "integer", "description": "How long.", "default": 14}


@of("resources")
async def test_the_resources_are_read(
    library: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "SHELVES", tmp_path)
    (tmp_path / "today").write_text("sun")
    async with connected(library.server) as pair:
        for uri, text in [*RESOURCES, ("notes://today", "sun")]:
            result: Any = await pair.client.read_resource(uri)
            assert result.contents[0].text == text, uri
        for uri in ("notes://tomorrow", "notes://..%2Fetc"):
            with pytest.raises(RemoteError):
                await pair.client.read_resource(uri)


@of("prompts")
async def test_the_prompts_are_written(library: Any) -> None:
    async with connected(library.server) as pair:
        review: Any = await pair.client.get_prompt("review", {"title": "Tides", "words": "9"})
        assert [message.role for message in review.messages] == ["user", "assistant"]
        numbers = {"loans": "[1, 3]", "names": '{"a": "b"}', "least": "1.5"}
        mean: Any = await pair.client.get_prompt("statistics", numbers)
        assert mean.messages[0].content.text == "{'a': 'b'}: mean 2.0, enough: True"
        advice: Any = await pair.client.get_prompt("advise", {"reader": "Ann", "pictures": "true"})
        assert advice.messages[0].content.text.endswith("pictures.")
        listed = {prompt.name: prompt for prompt in await pair.client.list_prompts()}
    assert set(listed) == {
        *("explain", "review", "compare_books", "statistics", "summarize", "advise", "letter")
    }


@of("context")
@pytest.mark.parametrize("revision", [ALL[2], ALL[-1]])
async def test_the_context_has_what_a_tool_wants(library: Any, revision: str) -> None:
    def answer(params: Any) -> dict[str, Any]:
        one = "value" in params.requested_schema.properties
        return accept_result(value="Ann") if one else accept_result(name="Ann", age=30)

    reader = handlers_with(elicit=answer)
    async with connect(library.server, handlers=reader, revision=revision) as client:
        for name, arguments, expected in CONTEXT:
            assert (await client.call_tool(name, arguments)).data == expected, name
        for name, arguments, text in CONTEXT_TEXTS:
            assert (await client.call_tool(name, arguments)).content[0].text == text, name
        asks = (await client.call_tool("who")).data
        assert asks["client"]["name"] == "mcpgen_runtime"


@of("middleware")
async def test_the_middleware_changes_and_refuses(
    library: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    async with connected(library.server) as pair:
        result = await pair.client.call_tool("search", {"words": " Tides "})
        assert result.structured_content == {"words": "tides", "by": "library"}
        for name, text in (("discard", "x-api-key"), ("delete_all", "only for the staff")):
            refused: Any = await pair.client.call_tool(name, {"number": "1"})
            assert (refused.is_error, text in refused.content[0].text) == (True, True)
    assert "> tools/call\n< tools/call\n" in capsys.readouterr().out


@of("middleware")
async def test_a_key_opens_a_tool_over_http(library: Any) -> None:
    transport = httpx2.ASGITransport(app=library.server.asgi())
    headers = {"x-api-key": "key-1"}
    async with (
        httpx2.AsyncClient(transport=transport, headers=headers) as http,
        connect("http://127.0.0.1/mcp", http_client=http) as client,
    ):
        result: Any = await client.call_tool("discard", {"number": "7"})
    assert result.content[0].text == "7 is gone"


@of("composition")
async def test_servers_are_made_of_others(library: Any) -> None:
    async with connect(library.server) as client:
        assert [tool.name for tool in await client.list_tools()] == [
            *("due", "oslo_hours", "bergen_hours", "later_due", "extend", "later_extend"),
            "desk_lend",
        ]
        for name, arguments, expected in (
            ("due", {"days": 2}, "in 2 days"),
            ("bergen_hours", {}, "10 to 18"),
            ("later_extend", {"days": 3}, "3 days more"),
            ("desk_lend", {"title": "Tides"}, "Tides is lent"),
        ):
            assert (await client.call_tool(name, arguments)).content[0].text == expected
        branches = await client.read_resource("data://branches")
        assert branches.contents[0].text == '["Oslo","Bergen"]'


def test_examples_have_the_counted_lines_and_no_more_than_theirs() -> None:
    def count_lines(source: str) -> int:
        """Lines of code, without imports and docstrings."""
        left_out: set[int] = set()
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                left_out |= set(range(node.lineno, (node.end_lineno or 0) + 1))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node):
                left_out |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
        lines = enumerate(source.splitlines(), 1)
        return sum(at not in left_out and not NOT_COUNTED.fullmatch(line) for at, line in lines)

    here: list[list[str]] = []
    for name in LIBRARY:
        parts = re.split(r"^# (.+)$", examples()[f"library_{name}.py"], flags=re.MULTILINE)
        pairs = zip(parts[1::2], parts[2::2], strict=True)
        here += [[title, str(count_lines(text))] for title, text in pairs]
    rows = [row for row in tables_of(COMING_FROM) if len(row) > 2 and row[1].isdecimal()]
    assert [[row[0], row[2]] for row in rows] == here
    assert [row[0] for row in rows if int(row[2]) > int(row[1])] == []


def test_each_yes_of_the_table_of_features_has_a_test() -> None:
    rows = [row for row in tables_of(FEATURES) if row[0] != "Feature"]
    assert {row[3] for row in rows} == {"yes", "no"}
    assert [row[0] for row in rows if row[3] == "yes"] == [*TESTS_OF_FEATURES]
    for place in TESTS_OF_FEATURES.values():
        file, _, name = place.partition("::")
        text = (ROOT / "tests" / file).read_text("utf-8")
        assert re.search(rf"^(async )?def {name}\(", text, re.MULTILINE), place
