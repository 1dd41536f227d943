"""The models as they behave: what they take, refuse, keep and give back."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pydantic
import pytest

from generator.schemas import OPEN, TEXT, any_of, const, facts_of, normal_of, obj, ref
from generator.test_parts import CODEC
from mcpgen import paths
from mcpgen.literals import docstring
from mcpgen.model.docstrings import Doc
from mcpgen.model.unions import decide_all
from mcpgen.names import LIBRARIES, Library
from mcpgen.render import models, templates

NUMBER = {"type": "number"}

DEFINITIONS: dict[str, Any] = {
    "Text": obj("type text", type=const("text"), text=TEXT, mimeType=TEXT),
    "Image": obj("type data", type=const("image"), data=TEXT),
    "Block": any_of("Text", "Image"),
    "Near": obj("uri text", uri=TEXT, text=TEXT),
    "Far": obj("uri blob", uri=TEXT, blob=TEXT),
    "Contents": any_of("Near", "Far"),
    "Size": {"enum": ["small", "large"], "type": "string"},
    "Message": obj(
        "jsonrpc blocks",
        jsonrpc=const("2.0"),
        method=const("say"),
        _meta=OPEN,
        blocks={"type": "array", "items": ref("Block")},
        contents=ref("Contents"),
        either={"anyOf": [ref("Text"), {"type": "array", "items": ref("Block")}]},
        size=ref("Size"),
        count={"type": "integer", "minimum": 0},
        share={"type": "number", "minimum": 0, "maximum": 1},
        amount=NUMBER,
        gone={"type": ["string", "null"]},
        any={},
        extra=TEXT,
        odd=ref("Odd"),
        **{"class": TEXT, "list": {"type": "array", "items": TEXT}},
    ),
    "Tool": obj(
        "inputSchema",
        inputSchema=obj("type", type=const("object")),
        outputSchema=obj("type", type=const("object")),
    ),
    "Result": obj("resultType", resultType=TEXT),
    "Acute": obj("kind x", kind=const("\xe9"), x=TEXT),
    "Grave": obj("kind x", kind=const("\xe8"), x=TEXT),
    "Accents": any_of("Acute", "Grave"),
    "One": obj("\xe9-kind", **{"\xe9-kind": const("one"), "a": TEXT}),
    "Two": obj("\xe9-kind", **{"\xe9-kind": const("two"), "b": TEXT}),
    "Odd": any_of("One", "Two"),
}


@pytest.fixture(scope="module", params=LIBRARIES)
def wire(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Any:
    """The module `_wire` of a package with these models, which are its attribute `models`."""
    library: Library = request.param
    folder = tmp_path_factory.mktemp("models")
    package = folder / f"for_{library}"
    (package / "r").mkdir(parents=True)
    (package / "r" / "models.py").write_text(render_models(library), encoding="utf-8")
    for name in CODEC:
        shutil.copy(paths.templates_dir() / "package" / name, package)
    shutil.copy(paths.PACKAGE / "schema" / "method_facts.py", package)
    if library == "pydantic":
        types_alone = {"has": {"protocol": False, "mutability": "frozen"}}
        for name in ("_model_base.py", "_structs.py", "_validation_errors.py"):
            text = templates.render(f"for_pydantic/{name}.jinja", package=types_alone)
            (package / name).write_text(text, encoding="utf-8")
    sys.path.insert(0, str(folder))
    try:
        module: Any = importlib.import_module(f"for_{library}._wire")
        module.models = importlib.import_module(f"for_{library}.r.models")
    finally:
        sys.path.remove(str(folder))
    return module


def render_models(library: Library = "msgspec", title: str = "Models.") -> str:
    """The models of these definitions; those of the same title are made once."""
    normal = normal_of(facts=facts_of(defaults={"*": {"resultType": "done"}}), **DEFINITIONS)
    docs = {name: Doc(docstring(f"About {name}."), {}) for name in normal.definitions}
    job = models.job(normal, decide_all(normal).tests, docs, title, library=library)
    return models.render(normal, job)


def through(wire: Any, kind: str, text: str) -> Any:
    """The JSON of a text after decoding and encoding it."""
    decoded = wire.decoder(getattr(wire.models, kind))(text.encode())
    return json.loads(wire.encode(decoded))


def message(**members: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "blocks": [], **members})


@pytest.mark.parametrize(
    "members",
    [
        {"_meta": {"a/b": [1, 1.0, {}]}},
        {"blocks": [{"type": "text", "text": "a", "mimeType": "b"}, {"type": "image", "data": ""}]},
        {"contents": {"uri": "a", "blob": "b"}},
        {"contents": {"uri": "a", "text": "b"}},
        {"either": {"type": "text", "text": "a"}},
        {"either": [{"type": "image", "data": ""}]},
        {"size": "large", "count": 0, "class": "c", "list": ["a"]},
        {"share": 1, "extra": "e"},
        {"share": 0.5, "amount": 1},
        {"amount": 1.0, "gone": None, "any": {"x": [None]}},
        {"odd": {"\u00e9-kind": "one", "a": "x"}},
        {"odd": {"\u00e9-kind": "two"}},
    ],
)
def test_messages_of_the_schema_survive_a_round_trip(wire: Any, members: Any) -> None:
    text = message(**members)
    assert through(wire, "Message", text) == json.loads(text)


def test_integers_and_floats_stay_what_they_are(wire: Any) -> None:
    decoded = wire.decoder(wire.models.Message)(message(amount=1).encode())
    assert type(decoded.amount) is int
    decoded = wire.decoder(wire.models.Message)(message(amount=1.0).encode())
    assert type(decoded.amount) is float


def test_an_absent_member_is_none_and_is_not_sent(wire: Any) -> None:
    decoded = wire.decoder(wire.models.Message)(message().encode())
    assert (decoded.meta, decoded.size, decoded.share, decoded.class_) == (None,) * 4
    assert wire.encode(decoded) == b'{"jsonrpc":"2.0","blocks":[]}'
    said = wire.models.Message(blocks=[], size=None, class_=None)
    assert wire.encode(said) == wire.encode(decoded)


def test_absent_and_null_differ_where_null_is_a_value(wire: Any) -> None:
    decoded = wire.decoder(wire.models.Message)(message(any=None).encode())
    assert (decoded.gone, decoded.any) == (wire.UNSET, None)
    decoded = wire.decoder(wire.models.Message)(message(gone=None).encode())
    assert (decoded.gone, decoded.any) == (None, wire.UNSET)


@pytest.mark.parametrize("wire_name", ["_meta", "size", "share", "count", "class", "contents"])
def test_null_for_an_optional_member_is_taken_as_absent(wire: Any, wire_name: str) -> None:
    assert through(wire, "Message", message(**{wire_name: None})) == json.loads(message())


def test_null_for_a_required_member_is_refused(wire: Any) -> None:
    with pytest.raises(wire.ValidationError, match=r"\$\.blocks"):
        through(wire, "Message", message(blocks=None))


def test_a_member_called_extra_is_no_extra_member(wire: Any) -> None:
    decoded = wire.decoder(wire.models.Message)(message(extra="e", more=1).encode())
    assert (decoded.extra_, decoded.extra) == ("e", {})


def test_absent_members_are_not_in_the_repr(wire: Any) -> None:
    assert repr(wire.models.Text(text="a")) == "Text(text='a')"
    assert repr(wire.models.Result()) == "Result(result_type='done')"


@pytest.mark.parametrize(
    ("members", "error"),
    [
        ({"blocks": [{"type": "film"}]}, r"\$\.blocks\[0\]\.type"),
        ({"contents": {"uri": "a"}}, r"Expected one of Near, Far, got an object with uri"),
        ({"contents": {"uri": "a", "text": 3}}, r"Expected `str`, got `int` - at `\$\.text`"),
        ({"size": "huge"}, r"\$\.size"),
        ({"count": -1}, r"\$\.count"),
        ({"count": 1.5}, r"\$\.count"),
        ({"share": 1.5}, "share: expected 0 to 1, got 1.5"),
    ],
)
def test_schema_violations_are_refused_with_their_place(
    wire: Any, members: Any, error: str
) -> None:
    with pytest.raises(wire.ValidationError, match=error):
        through(wire, "Message", message(**members))


@pytest.mark.parametrize(
    "tool",
    [
        {"inputSchema": {}},
        {"inputSchema": {"type": "array"}},
        {"inputSchema": {"type": "object"}, "outputSchema": {"type": "string"}},
    ],
)
def test_a_json_schema_of_another_type_is_refused(wire: Any, tool: Any) -> None:
    with pytest.raises(wire.ValidationError, match='expected a JSON Schema with "type": "object"'):
        through(wire, "Tool", json.dumps(tool))


def test_a_json_schema_keeps_everything(wire: Any) -> None:
    tool = {"inputSchema": {"type": "object", "$defs": {"A": {}}, "anyOf": [{}]}}
    assert through(wire, "Tool", json.dumps(tool)) == tool


def test_a_constant_member_may_have_the_name_of_another_tag() -> None:
    normal = normal_of(
        Ask=obj("rpc method", rpc=const("2.0"), method=const("ask")),
        Answer=obj("rpc", rpc=const("2.0"), answer=TEXT),
        Other=obj("method rpc", rpc=const("2.0"), method=const("other")),
    )
    tags = {definition.tag and definition.tag[0] for definition in normal.definitions.values()}
    assert tags == {"rpc", "method"}
    docs = {name: Doc(docstring("Text."), {}) for name in normal.definitions}
    source = models.render(normal, models.job(normal, {}, docs, "Models."))
    assert "always_sent(" in source
    assert "import always_sent" in source or ", always_sent" in source


def test_a_default_is_always_sent_and_may_be_missing(wire: Any) -> None:
    assert through(wire, "Result", "{}") == {"resultType": "done"}
    assert wire.encode(wire.models.Result()) == b'{"resultType":"done"}'


def test_a_tag_and_a_constant_need_not_be_given(wire: Any) -> None:
    block = wire.models.Text(text="a")
    assert block.type == "text"
    assert json.loads(wire.encode(block)) == {"type": "text", "text": "a"}
    said = wire.models.Message(blocks=[block], list_=["x"], class_="y")
    assert json.loads(wire.encode(said)) == {
        "jsonrpc": "2.0",
        "blocks": [{"type": "text", "text": "a"}],
        "class": "y",
        "list": ["x"],
    }


def test_a_constant_beyond_ascii_tells_a_type_like_any_other(wire: Any) -> None:
    for text in ('{"kind":"\xe9","x":"a"}', '{"kind":"\xe8","x":"a"}'):
        assert through(wire, "Accents", text) == json.loads(text)
    with pytest.raises(wire.ValidationError):
        through(wire, "Accents", '{"kind":"e","x":"a"}')


def test_models_are_frozen(wire: Any) -> None:
    with pytest.raises((AttributeError, pydantic.ValidationError)):
        wire.models.Text(text="a").text = "b"


def test_no_type_is_named_after_anything_but_a_definition(wire: Any) -> None:
    own = {
        name
        for name, value in vars(wire.models).items()
        if isinstance(value, type) and value.__module__ == wire.models.__name__
    }
    objects = {"Text", "Image", "Near", "Far", "Message", "Tool", "Result"}
    told = {"Acute", "Grave", "Accents", "One", "Two", "Odd", "Contents"}
    assert own - {"Block"} == objects | told  # pydantic has a class for a union with a tag


def test_models_do_not_depend_on_where_they_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = render_models()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(
        "[tool.black]\nline-length = 40\nskip-string-normalization = true\n"
        "[tool.datamodel-codegen]\nuse-union-operator = false\n"
    )
    assert render_models(title="Elsewhere.") == first.replace("Models.", "Elsewhere.", 1)
