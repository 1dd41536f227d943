"""Forms: which types can be one, and what of them each revision can carry."""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, TypeAlias, TypedDict

import annotated_types
import msgspec
import pydantic
import pytest
from msgspec import Meta

from kit.live import server_with
from kit.respondent import accept_result, connect_respondent
from kit.rules import revisions_holding
from kit.wire import every, text_in
from mcpgen_runtime import Context, LocalProtocolError, RemoteProtocolError, titles

OLD = revisions_holding("elicitation.string-schema-2025-06")
NEW = revisions_holding("elicitation.string-schema")
FORMS = revisions_holding("elicitation.schema-flat")
with_forms = pytest.mark.parametrize("revision", FORMS)


async def form_sent(revision: str, form: Any, answer: Any = None) -> tuple[Any, Any]:
    """The form that a client gets for a type or schema, and what the handler is answered."""
    results: list[Any] = []

    async def ask(ctx: Context) -> str:
        try:
            results.append(await ctx.elicit("Please", form))
        except (TypeError, LocalProtocolError, RemoteProtocolError) as error:
            results.append(error)
        return "asked"

    answers = {"elicitation/create": answer or {"action": "decline"}}
    async with connect_respondent(server_with(ask), revision, answers) as client:
        assert text_in(await client.call("ask")) == "asked"
        asked = client.asked
    if isinstance(results[-1], Exception):
        assert asked == [] or isinstance(results[-1], RemoteProtocolError)
        raise results[-1]
    ((_, params),) = asked
    return params["requestedSchema"], results[-1]


class Size(enum.Enum):
    SMALL = "s"
    LARGE = "l"


def one(kind: Any, **default: Any) -> Any:
    """A form of one field `x`."""
    return msgspec.defstruct("Form", [("x", kind, *default.values())])


Text = Annotated[str, Meta(title="T", description="D", min_length=1, max_length=9)]
Mail = Annotated[str, Meta(extra_json_schema={"format": "email"})]
Link = Annotated[str, Meta(extra_json_schema={"format": "uri"})]

ANYWHERE = [
    (
        Text,
        {"type": "string", "title": "T", "description": "D", "minLength": 1, "maxLength": 9},
    ),
    (Mail, {"type": "string", "format": "email"}),
    (Link, {"type": "string", "format": "uri"}),
    (datetime.date, {"type": "string", "format": "date"}),
    (datetime.datetime, {"type": "string", "format": "date-time"}),
    (Annotated[int, Meta(gt=0, lt=9)], {"type": "integer", "minimum": 1, "maximum": 8}),
    (int | float, {"type": "number"}),
    (Annotated[float, Meta(ge=0.5, le=9)], {"type": "number", "minimum": 0.5, "maximum": 9}),
    (Annotated[bool, Meta(title="Sure?")], {"type": "boolean", "title": "Sure?"}),
    (Literal["s", "l"], {"type": "string", "enum": ["s", "l"]}),
    (Size, {"type": "string", "enum": ["s", "l"]}),
]


@pytest.mark.requirement(
    "elicitation.enum-untitled-single",
    "elicitation.schema-flat",
    "elicitation.string-schema",
    "elicitation.string-schema-2025-06",
    "elicitation.string-formats",
    "elicitation.number-schema",
    "elicitation.number-schema-2025-06",
    "elicitation.boolean-schema",
)
@with_forms
@pytest.mark.parametrize(("kind", "wire"), ANYWHERE)
async def test_a_plain_type_is_a_field_of_a_form(revision: str, kind: Any, wire: Any) -> None:
    form, _ = await form_sent(revision, one(kind))
    assert form == {"type": "object", "properties": {"x": wire}, "required": ["x"]}


def described(kind: str, rules: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "description": f"({rules})", **more}


RULES = [
    (Annotated[str, Meta(pattern="^x")], described("string", 'pattern: "^x"'), "yx"),
    (Annotated[int, Meta(multiple_of=2)], described("integer", "multipleOf: 2"), 3),
    (Annotated[float, Meta(gt=2)], described("number", "exclusiveMinimum: 2"), 2),
    (
        Annotated[str, Meta(description="D", pattern="^x", examples=["x", "xy"])],
        {"type": "string", "description": 'D (pattern: "^x", examples: ["x","xy"])'},
        "yx",
    ),
]


@with_forms
@pytest.mark.parametrize(("kind", "wire", "wrong"), RULES)
async def test_a_rule_that_forms_lack_is_described_and_checked(
    revision: str, kind: Any, wire: Any, wrong: Any
) -> None:
    form, _ = await form_sent(revision, one(kind))
    assert form == {"type": "object", "properties": {"x": wire}, "required": ["x"]}
    with pytest.raises(RemoteProtocolError, match=r"content: .* at `\$.x`"):
        await form_sent(revision, one(kind), accept_result(x=wrong))


class Rules(pydantic.BaseModel):
    bound: int | None = pydantic.Field(default=None, ge=1)
    optional: Optional[Annotated[str, pydantic.Field(max_length=3)]] = None  # noqa: UP045 - as users write it
    zip: str = pydantic.Field(default="0", pattern="^[0-9]+$")
    city: str = pydantic.Field(default="", examples=["Oslo"], description="Where.")
    ratio: float = pydantic.Field(default=0.5, gt=0, lt=1)
    page: pydantic.HttpUrl | None = None
    upper: Annotated[str, pydantic.AfterValidator(str.upper)] = "a"
    even: Annotated[int, pydantic.Field(strict=True, multiple_of=2)] = 2
    span: Annotated[int, annotated_types.Interval(ge=1, le=9)] = 3


@with_forms
async def test_a_form_of_pydantic_takes_what_arguments_take(revision: str) -> None:
    form, _ = await form_sent(revision, Rules)
    fields = {
        name: {key: value for key, value in field.items() if key != "default"}
        for name, field in form["properties"].items()
    }
    assert fields == {
        "bound": {"type": "integer", "minimum": 1},
        "optional": {"type": "string", "maxLength": 3},
        "zip": described("string", 'pattern: "^[0-9]+$"'),
        "city": {"type": "string", "description": 'Where. (examples: ["Oslo"])'},
        "ratio": described("number", "exclusiveMinimum: 0, exclusiveMaximum: 1"),
        "page": {"type": "string", "format": "uri", "maxLength": 2083},
        "upper": {"type": "string"},
        "even": described("integer", "multipleOf: 2"),
        "span": {"type": "integer", "minimum": 1, "maximum": 9},
    }
    assert "required" not in form


Titled = Annotated[Literal["#f00", "#0f0"], titles({"#f00": "Red", "#0f0": "Green"})]
CONSTS = [{"const": "#f00", "title": "Red"}, {"const": "#0f0", "title": "Green"}]
SIZES = {"type": "array", "items": {"type": "string", "enum": ["s", "l"]}}
SIZES_TITLED = [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]
SEVERAL = [
    (list[Literal["s", "l"]], SIZES),
    (
        Annotated[set[Size], Meta(min_length=1, max_length=2)],
        {**SIZES, "minItems": 1, "maxItems": 2},
    ),
    (list[Titled], {"type": "array", "items": {"anyOf": CONSTS}}),
    (
        Annotated[list[Size], titles(s="Small", l="Large")],
        {"type": "array", "items": {"anyOf": SIZES_TITLED}},
    ),
]


@pytest.mark.requirement("elicitation.enum-untitled-multi", "elicitation.enum-titled-multi")
@with_forms
@pytest.mark.parametrize(("kind", "wire"), SEVERAL)
async def test_a_list_of_choices_is_a_field_where_forms_have_lists(
    revision: str, kind: Any, wire: Any
) -> None:
    if revision in OLD:
        with pytest.raises(LocalProtocolError, match="has no such choice of several"):
            await form_sent(revision, one(kind))
    else:
        form, _ = await form_sent(revision, one(kind))
        assert form["properties"]["x"] == wire


@pytest.mark.requirement("elicitation.enum-titled-single", "elicitation.enum-schema-2025-06")
@with_forms
async def test_titles_of_a_choice_are_written_as_the_revision_has_them(revision: str) -> None:
    form, _ = await form_sent(revision, one(Titled))
    old = {"type": "string", "enum": ["#f00", "#0f0"], "enumNames": ["Red", "Green"]}
    new = {"type": "string", "oneOf": CONSTS}
    assert form["properties"]["x"] == (old if revision in OLD else new)


@with_forms
async def test_defaults_are_shown_where_the_revision_has_them(revision: str) -> None:
    @dataclass
    class Order:
        name: str
        note: str | None
        count: int = 1
        rate: float = 1.5
        size: Size = Size.LARGE
        colour: Titled = "#0f0"
        gift: bool = False
        by: datetime.date = datetime.date(2030, 1, 2)
        extra: str | None = None

    form, answer = await form_sent(revision, Order, accept_result(name="x", gift=True))
    assert form["required"] == ["name"]
    shown = {
        name: wire["default"] for name, wire in form["properties"].items() if "default" in wire
    }
    texts = {"size": "l", "colour": "#0f0", "by": "2030-01-02"}
    everything = {"count": 1, "rate": 1.5, "gift": False, **texts}
    assert shown == ({"gift": False} if revision in OLD else everything)
    assert answer.content == Order("x", None, gift=True)


Letter: TypeAlias = Literal["f", "c", "a", "e", "b", "d"]


@pytest.mark.parametrize("revision", NEW)
async def test_the_default_of_a_set_is_always_written_in_one_order(revision: str) -> None:
    @dataclass
    class Several:
        letters: set[Letter] = field(default_factory=lambda: {"a", "b", "c", "d", "e", "f"})
        none: list[Size] = field(default_factory=list)

    form, answer = await form_sent(revision, Several, accept_result())
    assert form["properties"]["letters"]["default"] == list("abcdef")
    assert form["properties"]["letters"]["items"]["enum"] == list("fcaebd")
    assert "default" not in form["properties"]["none"]
    assert answer.content == Several()


@with_forms
async def test_typed_dicts_structs_and_models_are_forms_as_well(revision: str) -> None:
    class Typed(TypedDict):
        name: str
        size: NotRequired[Literal["s", "l"]]

    class Renamed(msgspec.Struct, rename="camel"):
        first_name: str
        last_name: str | msgspec.UnsetType = msgspec.UNSET

    class Ordered(pydantic.BaseModel):
        note: str | None = "none"  # a default before a required field
        name: str

    for kind, given, names, content in (
        (Typed, {"name": "x"}, ["name", "size"], {"name": "x"}),
        (Renamed, {"firstName": "x"}, ["firstName", "lastName"], Renamed("x")),
        (Ordered, {"name": "x"}, ["note", "name"], Ordered(name="x", note="none")),
    ):
        form, answer = await form_sent(revision, kind, accept_result(**given))
        assert (list(form["properties"]), form["required"]) == (names, list(given))
        assert answer.content == content


@every
async def test_types_that_are_no_forms_are_type_errors(revision: str) -> None:
    class Pair(NamedTuple):
        x: int

    class Typed(TypedDict):
        x: int

    class Tagged(msgspec.Struct, tag=True):
        x: int

    class Row(msgspec.Struct, array_like=True):
        x: int

    forms: list[tuple[Any, str]] = [
        (bytes, "expected a dataclass"),
        (Pair, "expected a dataclass"),
        (Row, "expected a dataclass"),
        (Tagged, "without a tag"),
        ("text", "form"),
        (one(Typed), "type typeddict"),
        (one(list[Typed]), "a list of an Enum or Literal"),
        (one(bytes), "type bytes"),
        (one(str | int), "expected one type"),
        (one(str | int | float), "expected one type"),
        (one(Literal[1, 2]), "a choice between texts"),
        (one(Annotated[str, Meta(extra_json_schema={"format": "ipv4"})]), "one of date, date-time"),
        (one(Annotated[int, Meta(extra_json_schema={"format": "uri"})]), "for text alone"),
        (
            one(Annotated[str, Meta(extra_json_schema={"x-a": 1})]),
            "form Form: x: a form says nothing of x-a; remove it, or say it in the description",
        ),
        (one(Annotated[Literal["s"], titles(m="Medium")]), "there is no value m"),
    ]
    for form, reason in forms:
        with pytest.raises(TypeError, match=reason):
            await form_sent(revision, form)


def schema(*required: str, **fields: Any) -> dict[str, Any]:
    """A form as wire object."""
    made: dict[str, Any] = {"type": "object", "properties": fields}
    return {**made, "required": list(required)} if required else made


@pytest.mark.requirement("elicitation.enum-names-legacy")
@with_forms
async def test_a_schema_is_sent_as_it_is(revision: str) -> None:
    legacy = {"type": "string", "enum": ["a"], "enumNames": ["A"]}
    form = schema("x", x=legacy, y={"type": "boolean", "default": True})
    sent, answer = await form_sent(revision, form, accept_result(x="a", y=False, other=1))
    assert sent == form
    assert answer.content == {"x": "a", "y": False, "other": 1}


@with_forms
async def test_a_schema_that_is_no_form_of_the_revision_is_not_sent(revision: str) -> None:
    never = [
        {"type": "array", "items": {}},
        {"type": "object"},
        {**schema(), "additionalProperties": False},
        schema(x={"type": "object", "properties": {}}),
        schema(x={"type": "array", "items": {"type": "string"}}),
        schema(x={"type": "string", "format": "ipv4"}),
        schema(x={"type": "string", "pattern": "x"}),
        schema(x={"type": "string", "minLength": "3"}),
        schema(x={"type": "integer", "default": 1.5}),
        schema(x={"type": "boolean", "default": "yes"}),
        schema("y", x={"type": "string"}),
    ]
    newer = [
        schema(x={"type": "string", "default": "x"}),
        schema(x={"type": "number", "default": 1.5}),
        schema(x={"type": "string", "enum": ["a"], "default": "a"}),
        schema(x={"type": "string", "oneOf": [{"const": "a", "title": "A"}]}),
        schema(x={"type": "array", "items": {"type": "string", "enum": ["a"]}}),
    ]
    for form in never + newer:
        if revision in NEW and form in newer:
            assert (await form_sent(revision, form))[0] == form
        else:
            with pytest.raises(LocalProtocolError, match="no form in"):
                await form_sent(revision, form)


@with_forms
async def test_a_single_value_is_a_form_of_one_field(revision: str) -> None:
    for kind, wire, value, schema in (
        (Annotated[int, Meta(le=9)], 3.0, 3, {"type": "integer", "maximum": 9}),
        (Size, "l", Size.LARGE, {"type": "string", "enum": ["s", "l"]}),
    ):
        sent, answer = await form_sent(revision, kind, accept_result(value=wire))
        assert (sent["properties"], sent["required"]) == ({"value": schema}, ["value"])
        assert answer.content == value
