"""`--models pydantic`: the messages as pydantic models, and what they read, write and refuse."""

from __future__ import annotations

import copy
import importlib
import json
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from random import Random
from types import GenericAlias
from typing import Annotated, Any

import fastapi
import httpx2
import jsonschema
import pydantic
import pytest

import mcpgen_runtime
import mcpgen_runtime.models as merged_structs
from decoding.instances import Instances
from generator.command_line import output_of, run
from generator.selections import MIDDLE, NAMES, NEWEST, spec_of, write_package
from generator.test_parts import IMPORT_ALL
from mcpgen import names, schema
from mcpgen.model.parts import Selection
from mcpgen.render import tree
from mcpgen_runtime import _wire

pytestmark = pytest.mark.costly

CASES = 4
"""Values of each definition."""
REVISION = pytest.mark.parametrize("revision", NAMES)


class Package:
    """A package of types with all revisions, on pydantic, beside the same types as Structs."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.structs = importlib.import_module(f"{module.__name__}._structs")
        self.merged = importlib.import_module(f"{module.__name__}.models")

    def models(self, revision: str) -> Any:
        """The models of a revision."""
        return importlib.import_module(f"{self.module.__name__}.{names.folder(revision)}.models")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Package]:
    folder = tmp_path_factory.mktemp("pydantic_values")
    words = ("-q", "--revision", "all", "--models", "pydantic", "--parts", "types")
    assert run(*words, "-o", str(folder / "pydantic_values")).code == 0
    sys.path.insert(0, str(folder))
    yield Package(importlib.import_module("pydantic_values"))
    sys.path.remove(str(folder))


def structs(revision: str) -> Any:
    """The Structs of a revision."""
    return importlib.import_module(f"{mcpgen_runtime.__name__}.{names.folder(revision)}.models")


@cache
def values_of(revision: str) -> Mapping[str, list[Any]]:
    """JSON values of each definition of a revision that are valid, the same in each run."""
    definitions = schema.load(revision).definitions
    instances = Instances(definitions, Random(revision))
    values: dict[str, list[Any]] = {}
    for name in definitions:
        if hasattr(structs(revision), name):
            decode = _wire.decoder(getattr(structs(revision), name))
            made = [instances.valid(name) for _ in range(CASES)]
            values[name] = [
                each
                for each in made
                if outcome(decode, _wire.encode, json.dumps(each).encode())[0] is not None
            ]
    return values


def outcome(decode: Any, encode: Any, data: bytes) -> tuple[Any, str]:
    """A message after it was decoded and encoded again, and the error if it is refused."""
    try:
        return json.loads(encode(decode(data))), ""
    except ValueError as error:
        return None, str(error)


def with_floats(value: Any) -> Any:
    """A JSON value with `1.0` in place of each `1`."""
    if isinstance(value, dict):
        return {name: with_floats(each) for name, each in value.items()}
    if isinstance(value, list):
        return [with_floats(each) for each in value]
    return float(value) if type(value) is int else value


def without_tags(value: Any) -> Any:
    """A JSON value without `type` and `method` in any object."""
    if isinstance(value, dict):
        kept = {name: each for name, each in value.items() if name not in ("type", "method")}
        return {name: without_tags(each) for name, each in kept.items()}
    return [without_tags(each) for each in value] if isinstance(value, list) else value


def changed(revision: str) -> Callable[[Any], Any]:
    """A change of one random thing in a value."""
    return Instances(schema.load(revision).definitions, Random(revision)).changed


TEXT = b'{"type": "text", "text": "a"}'
LINK = b'{"type": "resource_link", "uri": "a:b", "name": "a", "size": %b}'
OF_TOOL = b'{"type": "tool_result", "toolUseId": "a", "content": [%b]}'


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("Tool", b'{"name": "a", "inputSchema": {"type": "object"}, "title": null, "more": 1}'),
        ("Tool", b'{"name": "a", "inputSchema": {"type": "array"}}'),
        ("CallToolResult", b'{"content": [%b], "structuredContent": {"a": null, "b": 1.0}}' % TEXT),
        ("CallToolResult", b'{"content": [{"type": "text", "text": 5}]}'),
        ("Annotations", b'{"audience": ["user"], "priority": 1}'),
        ("ProgressNotificationParams", b'{"progressToken": 1, "progress": 1.0}'),
        ("EmbeddedResource", b'{"type": "resource", "resource": {"uri": "a:b", "text": "a"}}'),
        ("LoggingMessageNotificationParams", b'{"level": "info", "data": null}'),
        *(
            ("SamplingMessage", b'{"role": "user", "content": %b}' % content)
            for content in (
                *(b'{"text": "a"}', b'{"type": "text", "text": 5}', b'{"type": "smell"}', b"5"),
                *(b"[]", b'[{"text": "a"}]', b'[{"type": "text", "text": 5}]'),
                b"[%b]" % (OF_TOOL % (LINK % b"3.0")),
                b"[%b]" % (OF_TOOL % (LINK % b'"a"')),
            )
        ),
        ("ElicitResult", b'{"action": "accept", "content": {"a": null, "b": 1.0}}'),
        ("PrimitiveSchemaDefinition", b'{"type": "string", "enum": null}'),
    ],
)
@pytest.mark.parametrize("revision", [MIDDLE, NEWEST])
def test_models_accept_and_refuse_the_same_json_as_structs(
    package: Package, revision: str, name: str, data: bytes
) -> None:
    read = package.module.decoder(getattr(package.models(revision), name))
    value, error = outcome(_wire.decoder(getattr(structs(revision), name)), _wire.encode, data)
    expected = value, error.replace(" | null", "")  # pydantic does not say that null would do
    actual = outcome(read, package.module.encode, data)
    assert json.dumps(actual, sort_keys=True) == json.dumps(expected, sort_keys=True)


@REVISION
@pytest.mark.parametrize("change", ["none", "with_floats", "without_tags", "changed"])
def test_models_accept_and_refuse_each_value_as_structs_do(
    package: Package, revision: str, change: str
) -> None:
    changes: Mapping[str, Callable[[Any], Any]] = {
        "none": lambda value: value,
        "with_floats": with_floats,
        "without_tags": without_tags,
        "changed": changed(revision),
    }
    refused = 0
    for name, values in values_of(revision).items():
        decode = package.module.decoder(getattr(package.models(revision), name))
        decode_struct = _wire.decoder(getattr(structs(revision), name))
        for value in map(changes[change], values):
            data = json.dumps(value).encode()
            expected, _ = outcome(decode_struct, _wire.encode, data)
            refused += expected is None
            assert outcome(decode, package.module.encode, data)[0] == expected, (name, value)
    assert (refused > 0) is (change in ("without_tags", "changed"))


def decoded(package: Package, revision: str) -> Iterator[tuple[str, Any]]:
    """Values of all models of a revision, with the name of the definition."""
    models = package.models(revision)
    for name, values in values_of(revision).items():
        kind = getattr(models, name)
        if isinstance(kind, type) and issubclass(kind, pydantic.BaseModel):
            decode = package.module.decoder(kind)
            for value in values:
                yield name, decode(json.dumps(value).encode())


@REVISION
def test_each_model_is_copied_pickled_and_dumped(package: Package, revision: str) -> None:
    count = 0
    for name, value in decoded(package, revision):
        kind = type(value)
        assert value == copy.copy(value) == copy.deepcopy(value) == value.model_copy(), name
        assert pickle.loads(pickle.dumps(value)) == value
        wire = package.module.to_builtins(value)
        assert value.model_dump(mode="json") == value.model_dump(mode="json", by_alias=True) == wire
        assert json.loads(value.model_dump_json()) == wire
        assert kind.model_validate(value.model_dump()) == value, name
        assert kind.model_validate(value.model_dump(by_alias=False)) == value, name
        assert kind.model_validate_json(value.model_dump_json()) == value, name
        count += 1
    assert count > 200


@REVISION
@pytest.mark.parametrize("mode", ["validation", "serialization"])
def test_each_type_has_a_json_schema_that_its_values_fit(
    package: Package, revision: str, mode: Any
) -> None:
    kinds = {name: getattr(package.models(revision), name) for name in values_of(revision)}
    adapters = [(name, mode, pydantic.TypeAdapter(kind)) for name, kind in kinds.items()]
    schemas, definitions = pydantic.TypeAdapter.json_schemas(adapters)
    jsonschema.Draft202012Validator.check_schema(definitions)
    for name, kind in kinds.items():
        validator = jsonschema.Draft202012Validator({**definitions, **schemas[name, mode]})
        decode = package.module.decoder(kind)
        for value in values_of(revision)[name]:
            wire = package.module.to_builtins(decode(json.dumps(value).encode()))
            assert validator.is_valid(wire), (name, value)


@REVISION
def test_isinstance_tells_the_members_of_each_union(package: Package, revision: str) -> None:
    models = package.models(revision)
    unions = (package.structs.Tagged, package.structs.Untagged)
    count = 0
    for name in values_of(revision):
        kind = getattr(package.models(revision), name)
        if not isinstance(kind, type) or not issubclass(kind, unions):
            continue
        decode = package.module.decoder(kind)
        for value in values_of(revision)[name]:
            assert isinstance(decode(json.dumps(value).encode()), kind), (name, value)
        assert not isinstance(models.Implementation(name="a", version="1"), kind), name
        count += 1
    assert count > 3


MERGED = [
    name
    for name, value in vars(merged_structs).items()
    if isinstance(value, type) and value.__module__ == merged_structs.__name__
    if not name.startswith("_")
]


@pytest.mark.parametrize("name", MERGED)
def test_a_class_of_all_revisions_is_like_a_model(package: Package, name: str) -> None:
    kind = getattr(package.merged, name)
    decode = package.module.decoder(kind)
    whole = pydantic.TypeAdapter(kind).json_schema()
    assert kind.model_json_schema() == whole
    assert kind.model_fields == next(kind.structs()).model_fields
    for revision in NAMES:
        for value in values_of(revision).get(name, ()):
            if not isinstance(value, dict):
                continue
            text = json.dumps(value).encode()
            read = decode(text)
            assert isinstance(read, kind)
            assert kind.model_validate_json(text) == read
            assert kind.model_validate(read) is read
            assert type(kind.model_validate(read.model_dump())) is type(read)
    derived = type("Derived", (kind,), {"__module__": __name__})
    assert issubclass(derived, kind)
    assert issubclass(derived, next(kind.structs()))


def test_classes_of_all_revisions_have_valid_json_schemas(package: Package) -> None:
    kinds = [pydantic.TypeAdapter(getattr(package.merged, name)) for name in MERGED]
    adapters: list[tuple[int, Any, Any]] = [
        (at, "validation", each) for at, each in enumerate(kinds)
    ]
    schemas, definitions = pydantic.TypeAdapter.json_schemas(adapters)
    assert len(schemas) == len(MERGED)
    whole = {**definitions, "anyOf": [*schemas.values()]}
    jsonschema.Draft202012Validator.check_schema(whole)


async def test_fastapi_serves_classes_of_all_revisions_unions_and_absent_members(
    package: Package,
) -> None:
    models, tool_type = package.models(NEWEST), package.merged.Tool
    tool = {
        "name": "a",
        "inputSchema": {"type": "object"},
        "execution": {"taskSupport": "optional"},
    }
    message = {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no"}}
    content = {"role": "user", "content": [{"type": "text", "text": "a"}]}
    bodies = {"tool": tool, "tools": [tool, tool], "message": message, "content": content}
    kinds = {
        "tool": tool_type,
        "tools": GenericAlias(list, tool_type),
        "message": models.JSONRPCMessage,
        "content": models.SamplingMessage,
    }
    application = fastapi.FastAPI()
    for name, kind in kinds.items():

        def echo(value: Any) -> Any:
            return value

        echo.__annotations__ = {"value": Annotated[kind, fastapi.Body()], "return": kind}
        application.post(f"/{name}")(echo)
    assert application.openapi()["paths"].keys() == {f"/{name}" for name in bodies}
    transport = httpx2.ASGITransport(application)
    async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
        for name, body in bodies.items():
            answer = await client.post(f"/{name}", json=body)
            assert (answer.status_code, answer.json()) == (200, body)
        for name, wrong in (("tool", {"name": "a"}), ("content", {"role": "user", "content": {}})):
            assert (await client.post(f"/{name}", json=wrong)).status_code == 422


def test_a_model_is_frozen_with_keywords_and_wire_names(package: Package) -> None:
    models = package.models(NEWEST)
    tool: Any = models.Tool(name="a", input_schema={"type": "object"})
    assert issubclass(models.Tool, pydantic.BaseModel)
    assert tool.model_dump_json() == '{"inputSchema":{"type":"object"},"name":"a"}'
    assert repr(tool) == "Tool(input_schema={'type': 'object'}, name='a')"
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        tool.name = "b"
    with pytest.raises(TypeError):
        models.TextContent("a")


def test_a_model_has_fields_by_wire_name_before_its_first_use(package: Package) -> None:
    code = (
        f"from {package.models(NEWEST).__name__} import TextContent as kind; "
        "print(*sorted(row.alias or name for name, row in kind.model_fields.items()))"
    )
    fields = output_of(code, cwd=Path(package.module.__file__).parents[1])
    assert fields == "_meta annotations text type\n"


def test_a_package_of_types_needs_pydantic_alone(tmp_path: Path) -> None:
    chosen = Selection(("types",), models="pydantic")
    specs = [spec_of(name) for name in (MIDDLE, NEWEST)]
    folder = write_package(tree.render_package(specs, "pkg", chosen, form=dict), tmp_path)
    of_pydantic = ("annotated_types", "pydantic", "pydantic_core", "typing_inspection")
    # zoneinfo looks for the module of the settings that Python was built with.
    import_all = f"import zoneinfo\n{IMPORT_ALL}"
    allowed = ",".join((*of_pydantic, "typing_extensions"))
    assert output_of(import_all, folder, allowed, cwd=tmp_path)


def test_meta_is_typed_on_demand_and_keeps_other_members(package: Package) -> None:
    models = package.models(NEWEST)
    meta = {
        "io.modelcontextprotocol/protocolVersion": NEWEST,
        "io.modelcontextprotocol/clientInfo": {"name": "a", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
        "com.example/other": {"a": [1]},
    }
    typed = package.module.convert(meta, models.RequestMetaObject, extra=True)
    assert isinstance(typed.client_info, models.Implementation)
    assert typed.extra == {"com.example/other": {"a": [1]}}
    assert package.module.to_builtins(typed) == meta


WRONG_TEXT = {"type": "text", "text": []}
BOTH_WRONG = {**WRONG_TEXT, "annotations": {"audience": ["user", "1"]}}


@pytest.mark.parametrize(
    ("name", "value", "path"),
    [
        ("TextContent", WRONG_TEXT, "$.text"),
        ("CallToolResult", {"content": [WRONG_TEXT]}, "$.content[0].text"),
        ("SamplingMessage", {"role": "user", "content": BOTH_WRONG}, "$.content.text"),
        (
            *("SamplingMessage", {"role": "user", "content": {**BOTH_WRONG, "text": ""}}),
            "$.content.annotations.audience[1]",
        ),
    ],
)
def test_an_error_has_a_path_though_a_tag_is_a_member_too(
    package: Package, name: str, value: Any, path: str
) -> None:
    decode = package.module.decoder(getattr(package.models("2025-11-25"), name))
    with pytest.raises(ValueError, match=r"at `(.*)`$") as refused:
        decode(json.dumps(value).encode())
    assert str(refused.value).endswith(f"at `{path}`")
