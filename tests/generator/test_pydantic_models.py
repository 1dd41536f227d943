"""`--models pydantic`: the messages as pydantic models, and what they read, write and refuse."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import fastapi
import httpx2
import jsonschema
import pydantic
import pytest

import mcpgen_runtime
from generator.command_line import run
from generator.selections import MIDDLE, NEWEST, spec_of, write_package
from generator.test_parts import IMPORT_ALL
from mcpgen.model.parts import Selection
from mcpgen.package import manifest
from mcpgen.package.manifest import Options
from mcpgen.render import tree
from mcpgen_runtime import _wire

pytestmark = pytest.mark.costly

REVISIONS = (MIDDLE, NEWEST)


class Models:
    """A package of types with pydantic models, and the same messages as Structs."""

    def __init__(self, package: Any) -> None:
        self.package = package

    def both(self, revision: str) -> tuple[Any, Any]:
        """The models of a revision: of this package, and as Structs."""
        module = f"r{revision.replace('-', '_')}.models"
        return (
            importlib.import_module(f"{self.package.__name__}.{module}"),
            importlib.import_module(f"{mcpgen_runtime.__name__}.{module}"),
        )


@pytest.fixture(scope="module")
def types(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Models]:
    folder = tmp_path_factory.mktemp("pydantic")
    words = [word for name in REVISIONS for word in ("--revision", name)]
    options = ("--models", "pydantic", "--parts", "types")
    assert run("-q", *words, *options, "-o", str(folder / "pydantic_types")).code == 0
    sys.path.insert(0, str(folder))
    yield Models(importlib.import_module("pydantic_types"))
    sys.path.remove(str(folder))


def outcome(read: Any, write: Any, data: bytes) -> tuple[bytes | None, str]:
    """A message after it was read and written again, and the error if it can't be read."""
    try:
        value = read(data)
    except ValueError as error:
        return None, str(error)
    return write(value), ""


@pytest.mark.parametrize("revision", REVISIONS)
def test_official_examples_are_written_as_structs_write_them(
    types: Models, spec: Path, revision: str
) -> None:
    models, structs = types.both(revision)
    count = 0
    for path in sorted((spec / "schema" / revision / "examples").glob("*/*.json")):
        name, data = path.parent.name, path.read_bytes()
        read = types.package.decoder(getattr(models, name))
        value = _wire.decoder(getattr(structs, name))(data)
        assert types.package.encode(read(data)) == _wire.encode(value), path.name
        count += 1
    assert count > 50 or revision != NEWEST


TEXT = b'{"type": "text", "text": "a"}'


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("Tool", b'{"name": "a", "inputSchema": {"type": "object"}, "title": null, "more": 1}'),
        ("Tool", b'{"name": "a", "inputSchema": {"type": "object"}, "input_schema": 1}'),
        ("Tool", b'{"name": "a", "inputSchema": {"type": "array"}}'),
        ("Tool", b'{"name": 1, "inputSchema": {"type": "object"}}'),
        ("Tool", b'{"name": "a"}'),
        ("Tool", b"[]"),
        ("CallToolResult", b'{"content": [%b], "structuredContent": {"a": null, "b": 1.0}}' % TEXT),
        ("CallToolResult", b'{"content": [{"type": "text", "text": 5}]}'),
        ("CallToolResult", b'{"content": [{"type": "smell"}]}'),
        ("CallToolResult", b'{"content": [{"text": "a"}]}'),
        ("CallToolResult", b'{"content": {}, "isError": true}'),
        ("CallToolResult", b'{"content": [], "isError": "true"}'),
        ("Annotations", b'{"audience": ["user"], "priority": 1}'),
        ("Annotations", b'{"audience": ["cat"]}'),
        ("Annotations", b'{"priority": 2}'),
        ("ProgressNotificationParams", b'{"progressToken": 1, "progress": 1.0}'),
        ("ProgressNotificationParams", b'{"progressToken": true, "progress": 1}'),
        ("EmbeddedResource", b'{"type": "resource", "resource": {"uri": "a:b", "text": "a"}}'),
        ("EmbeddedResource", b'{"type": "resource", "resource": {"uri": "a:b", "text": 1}}'),
        ("EmbeddedResource", b'{"type": "resource", "resource": {"uri": "a:b"}}'),
        ("LoggingMessageNotificationParams", b'{"level": "info", "data": null}'),
        ("ListToolsResult", b'{"tools": [{"name": "a", "inputSchema": {"type": "array"}}]}'),
        ("JSONRPCMessage", b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'),
    ],
)
@pytest.mark.parametrize("revision", REVISIONS)
def test_models_accept_and_refuse_the_same_json_as_structs(
    types: Models, revision: str, name: str, data: bytes
) -> None:
    models, structs = types.both(revision)
    read = types.package.decoder(getattr(models, name))
    written, text = outcome(_wire.decoder(getattr(structs, name)), _wire.encode, data)
    expected = written, text.replace(" | null", "")  # pydantic does not say that null would do
    assert outcome(read, types.package.encode, data) == expected


LINK = b'{"type": "resource_link", "uri": "a:b", "name": "a", "size": %b}'
OF_TOOL = b'{"type": "tool_result", "toolUseId": "a", "content": [%b]}'


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("SamplingMessage", b'{"role": "user", "content": %b}' % content)
        for content in (
            b'{"text": "a"}',
            b'{"type": "text", "text": 5}',
            b'{"type": "smell"}',
            b"[]",
            b"5",
            b'[{"text": "a"}]',
            b'[{"type": "smell"}]',
            b'[{"type": "text", "text": 5}]',
            b"[%b]" % (OF_TOOL % (LINK % b"3.0")),
            b"[%b]" % (OF_TOOL % (LINK % b'"a"')),
        )
    ]
    + [
        ("ElicitResult", b'{"action": "accept", "content": {"a": null, "b": 1.0}}'),
        ("PrimitiveSchemaDefinition", b'{"type": "string", "enum": null}'),
    ],
)
def test_content_and_unions_are_no_guesses(types: Models, name: str, data: bytes) -> None:
    models, structs = types.both(NEWEST)
    read = types.package.decoder(getattr(models, name))
    written, text = outcome(_wire.decoder(getattr(structs, name)), _wire.encode, data)
    got, got_text = outcome(read, types.package.encode, data)
    assert got_text == text.replace(" | null", "")
    assert json.loads(got or b"null") == json.loads(written or b"null")


def described_types(models: Any) -> Iterator[Any]:
    """The models of a module and its unions."""
    for name, value in vars(models).items():
        is_own = getattr(value, "__module__", None) == models.__name__
        if is_own and not name.startswith("_"):
            yield value


def echoing(kinds: Mapping[str, Any]) -> fastapi.FastAPI:
    """An application that returns the bodies that it is sent, each path for one type."""
    application = fastapi.FastAPI()
    for name, kind in kinds.items():

        def echo(value: Any) -> Any:
            return value

        echo.__annotations__ = {"value": Annotated[kind, fastapi.Body()], "return": kind}
        application.post(f"/{name}")(echo)
    return application


@pytest.mark.slow
@pytest.mark.parametrize("revision", REVISIONS)
def test_fastapi_describes_each_type(types: Models, revision: str) -> None:
    models, _ = types.both(revision)
    kinds = {f"{at}": kind for at, kind in enumerate(described_types(models))}
    assert models.JSONRPCMessage in kinds.values()
    paths = echoing(kinds).openapi()["paths"]  # pytest makes an error of each warning
    assert len(paths) == len(kinds) > 100
    for kind in kinds.values():
        for mode in ("validation", "serialization"):
            schema = pydantic.TypeAdapter(kind).json_schema(mode=mode)
            jsonschema.Draft202012Validator.check_schema(schema)


async def test_fastapi_serves_unions_and_absent_members(types: Models) -> None:
    models, _ = types.both(NEWEST)
    message = {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no"}}
    content = {"role": "user", "content": [{"type": "text", "text": "a"}]}
    application = echoing({"message": models.JSONRPCMessage, "content": models.SamplingMessage})
    transport = httpx2.ASGITransport(application)
    async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
        for path, body in (("/message", message), ("/content", content)):
            answer = await client.post(path, json=body)
            assert (answer.status_code, answer.json()) == (200, body)
        wrong = await client.post("/content", json={"role": "user", "content": {"text": "a"}})
    assert wrong.status_code == 422


FIELDS = """
import json, sys
from {models} import *
kinds = [each for each in list(globals().values()) if hasattr(each, "model_fields")]
print(json.dumps({{
    kind.__name__: [row.alias or name for name, row in kind.model_fields.items()] for kind in kinds
}}))
"""


@pytest.mark.parametrize("revision", REVISIONS)
def test_fields_have_their_wire_names_before_the_first_use(types: Models, revision: str) -> None:
    models, structs = types.both(revision)
    folder = Path(types.package.__file__).parents[1]
    code = FIELDS.format(models=models.__name__)
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    fields = json.loads(done.stdout)
    assert len(fields) > 100
    for name, wire_names in fields.items():
        struct = getattr(structs, name)
        tag = _wire.tag_of(struct)
        expected = {row.encode_name for row in _wire.fields(struct)} | ({tag[0]} if tag else set())
        assert {*wire_names} == expected


def test_a_model_is_frozen_with_keywords_and_wire_names(types: Models) -> None:
    models, _ = types.both(NEWEST)
    tool: Any = models.Tool(name="a", input_schema={"type": "object"})
    assert issubclass(models.Tool, pydantic.BaseModel)
    assert tool.model_dump_json() == '{"inputSchema":{"type":"object"},"name":"a"}'
    assert repr(tool) == "Tool(input_schema={'type': 'object'}, name='a')"
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        tool.name = "b"
    with pytest.raises(TypeError):
        models.TextContent("a")


def test_an_absent_member_is_told_from_one_that_is_null(types: Models) -> None:
    models, _ = types.both(NEWEST)
    read = types.package.decoder(models.CallToolResult)
    absent, null = read(b'{"content": []}'), read(b'{"content": [], "structuredContent": null}')
    assert absent.structured_content is types.package.UNSET
    assert null.structured_content is None
    assert b"structuredContent" not in types.package.encode(absent)
    assert b'"structuredContent":null' in types.package.encode(null)


def test_numbers_that_json_lacks_are_refused_both_ways(types: Models) -> None:
    models, _ = types.both(NEWEST)
    with pytest.raises(ValueError, match="malformed"):
        types.package.decoder(models.CallToolResult)(b'{"content": [], "_meta": {"a": NaN}}')
    result = models.CallToolResult(content=[], meta={"a": float("inf")})
    with pytest.raises(types.package.EncodingError, match=r"inf - at `\$\._meta\.a`"):
        types.package.encode(result)


def test_a_class_of_all_revisions_makes_an_object_of_one(types: Models) -> None:
    merged = importlib.import_module(f"{types.package.__name__}.models")
    text = merged.TextContent(text="a")
    assert type(text) is types.both(NEWEST)[0].TextContent
    assert isinstance(text, merged.TextContent)


def test_a_package_of_types_needs_pydantic_alone(tmp_path: Path) -> None:
    chosen = Selection(("types",), models="pydantic")
    specs = [spec_of(name) for name in REVISIONS]
    folder = write_package(tree.render_package(specs, "pkg", chosen), tmp_path)
    of_pydantic = ("annotated_types", "pydantic", "pydantic_core", "typing_inspection")
    # zoneinfo looks for the module of the settings that Python was built with.
    import_all = f"import zoneinfo\n{IMPORT_ALL}"
    allowed = ",".join((*of_pydantic, "typing_extensions"))
    command = [sys.executable, "-I", "-c", import_all, str(folder), allowed]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("options", "recorded"),
    [(Options(errata=True), None), (Options(errata=True, models="pydantic"), "pydantic")],
)
def test_only_another_choice_of_models_is_in_the_manifest(
    options: Options, recorded: str | None
) -> None:
    text = manifest.new("pkg", options, {}, {}).text()
    assert json.loads(text)["options"].get("models") == recorded


def test_an_update_keeps_the_choice_of_models(tmp_path: Path) -> None:
    package = str(tmp_path / "acme")
    options = ("--revision", NEWEST, "--parts", "types")
    done = run(*options, "--models", "pydantic", "-o", package)
    assert "pip install pydantic\n" in done.err + done.out
    assert (
        json.loads((tmp_path / "acme/mcpgen.json").read_text())["options"]["models"] == "pydantic"
    )
    before = (tmp_path / "acme/_structs.py").read_text()
    assert run("check", package).code == 0
    assert run("update", package).code == 0
    assert (tmp_path / "acme/_structs.py").read_text() == before
    assert run("update", "--models", "msgspec", package).code == 0
    assert "pydantic" not in (tmp_path / "acme/_structs.py").read_text()


CALL = """
import anyio, pydantic
from acme import Server
from acme.testing import connected

server = Server("ready")

@server.tool()
def double(number: int) -> int:
    return 2 * number

async def main() -> None:
    async with connected(server) as pair:
        result = await pair.client.call_tool("double", {"number": 21})
        assert isinstance(result, pydantic.BaseModel)
        print(result.data, result.model_dump_json(include={"content"}))

anyio.run(main)
"""


def test_a_client_and_a_server_speak_with_models_of_pydantic(tmp_path: Path) -> None:
    done = run("-r", NEWEST, "--models", "pydantic", "-o", str(tmp_path / "acme"))
    assert "pip install pydantic msgspec anyio uritemplate\n" in done.err + done.out
    called = subprocess.run(
        [sys.executable, "-c", CALL], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert called.stdout == '42 {"content":[{"type":"text","text":"42"}]}\n', called.stderr


def test_the_settings_of_a_project_choose_pydantic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = f"[tool.mcpgen]\noutput='acme'\nrevisions=['{NEWEST}']\nparts=['types']\n"
    project = tmp_path / "pyproject.toml"
    project.write_text(f"{settings}models='pydantic'\n")
    assert run("-q").code == 0
    assert "import pydantic" in (tmp_path / "acme/_structs.py").read_text()
    assert run("check").code == 0
    project.write_text(settings)
    assert "the settings changed: models" in run("check").out
