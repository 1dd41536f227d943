"""Facts of a revision for another schema: what the schema says wins, and guesses are named."""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from generator.draft_packages import definitions_of, save_schema, with_request
from generator.schemas import COUNT, TEXT, any_of, const, obj, ref
from mcpgen import schema
from mcpgen.errors import FactsError
from mcpgen.model import schema_facts, schema_sources
from mcpgen.model.fitting import FittedFacts, Guess
from mcpgen.package import pipeline
from mcpgen.schema import facts

pytestmark = pytest.mark.costly

NAMES = [row.name for row in schema.revisions()]
WITH_EMPTY = "2025-11-25"


def fit_facts(folder: Path, definitions: Mapping[str, Any], stated: str = "") -> FittedFacts:
    """The facts that a schema of these definitions gets, with a facts file of this text."""
    path = save_schema(folder, definitions)
    loaded = schema.load_file(path)
    file = folder / "own.toml"
    file.write_text(stated)
    base = schema.read_file(path).nearest.entry.name
    return schema_facts.facts_for(loaded, base, file if stated else None)


@pytest.mark.parametrize("name", NAMES)
def test_a_known_structure_has_its_facts_and_no_guess(tmp_path: Path, name: str) -> None:
    path = schema.entry(name).folder / "schema.json"
    fit = schema_facts.facts_for(schema.load_file(path), name, None)
    assert fit == FittedFacts(facts.load(name), guesses=(), carried=())


@pytest.mark.parametrize("name", NAMES)
def test_a_new_member_of_a_type_changes_no_fact(tmp_path: Path, name: str) -> None:
    definitions = definitions_of(name)
    definitions["Tool"]["properties"]["colour"] = TEXT
    fit = fit_facts(tmp_path, definitions)
    assert (fit.facts, fit.guesses) == (facts.load(name), ())


def test_facts_of_methods_absent_from_the_schema_are_dropped(tmp_path: Path) -> None:
    definitions = definitions_of(WITH_EMPTY)
    for union in ("ClientRequest", "ServerRequest"):
        members = definitions[union]["anyOf"]
        definitions[union]["anyOf"] = [one for one in members if "Task" not in one["$ref"]]
    del definitions["CreateTaskResult"]
    for union in ("ClientResult", "ServerResult"):
        members = definitions[union]["anyOf"]
        definitions[union]["anyOf"] = [one for one in members if "CreateTask" not in one["$ref"]]
    fit = fit_facts(tmp_path, definitions)
    assert not [method for method in fit.facts.capabilities if method.startswith("tasks/")]
    of_extensions = [method for method in fit.facts.methods if method.startswith("tasks/")]
    assert of_extensions == ["tasks/update"]
    assert "tools/call" not in fit.facts.results.client  # CallToolResult, by the rule
    assert "tasks/result" not in fit.facts.results.server
    assert fit.guesses == ()


def test_a_required_member_defaults_as_in_a_later_revision(tmp_path: Path) -> None:
    definitions = definitions_of(WITH_EMPTY)
    definitions["ListToolsResult"]["properties"]["resultType"] = TEXT
    definitions["ListToolsResult"]["required"].append("resultType")
    fit = fit_facts(tmp_path, definitions)
    assert fit.facts.default("ListToolsResult", "resultType") == "complete"
    (guess,) = fit.guesses
    assert (guess.pointer, guess.value) == ("/defaults/*/resultType", "complete")


@pytest.mark.parametrize(
    ("member", "default"), [("ttl", 0), ("ttlSeconds", 0), ("ttlMax", None), ("cache", None)]
)
def test_a_default_of_zero_holds_for_the_member_in_any_unit(
    tmp_path: Path, member: str, default: int | None
) -> None:
    definitions = definitions_of(NAMES[-1])
    listed = definitions["ListToolsResult"]
    listed["properties"][member] = listed["properties"].pop("ttlMs")
    listed["required"] = [member if wire == "ttlMs" else wire for wire in listed["required"]]
    definitions["Colour"] = obj("ttl", ttl=COUNT)
    fit = fit_facts(tmp_path, definitions)
    assert fit.facts.default("ListToolsResult", member) == default
    assert fit.facts.default("Colour", "ttl") is None
    pointers = [guess.pointer for guess in fit.guesses]
    assert pointers == ([] if default is None else [f"/defaults/ListToolsResult/{member}"])


@pytest.mark.parametrize(
    ("more", "results", "guessed"),
    [
        ({"PaintResult": obj(colour=TEXT)}, None, 0),
        ({"PaintResultResponse": obj(result=ref("EmptyResult"))}, None, 0),
        ({}, ("EmptyResult",), 1),
    ],
    ids=["by its name", "by its response", "as the empty one"],
)
def test_a_result_is_found_by_rule_or_guessed(
    tmp_path: Path, more: dict[str, Any], results: tuple[str, ...] | None, guessed: int
) -> None:
    fit = fit_facts(tmp_path, with_request(WITH_EMPTY, "Paint", "tools/paint", **more))
    assert fit.facts.results.client.get("tools/paint") == results
    guesses = [one for one in fit.guesses if one.pointer.startswith("/results")]
    assert len(guesses) == guessed


@pytest.mark.parametrize(
    ("method", "capability"),
    [
        ("tools/paint", ("tools",)),
        ("completion/all", ("completions",)),
        ("resources/subscribe/all", ("resources",)),
        ("paint", ()),
    ],
)
def test_a_capability_is_that_after_which_a_new_method_is_named(
    tmp_path: Path, method: str, capability: tuple[str, ...]
) -> None:
    definitions = with_request(WITH_EMPTY, "Paint", method, PaintResult=obj(colour=TEXT))
    fit = fit_facts(tmp_path, definitions)
    assert fit.facts.capability(method) == capability
    guess, other = fit.guesses
    assert guess.pointer == f"/capabilities/{method.replace('/', '~1')}"
    assert guess.value == (".".join(capability) or False)
    assert guess.revision == WITH_EMPTY
    assert (other.pointer, other.value) == (f"/methods/{method.replace('/', '~1')}", {})


@pytest.mark.parametrize(
    ("name", "old", "new", "table", "expected"),
    [
        pytest.param(
            *(NAMES[-1], "-32020", "-32055", "errors"),
            {"header_mismatch": -32055, "defined": (-32055, -32022, -32021)},
            id="a code of an error",
        ),
        pytest.param(
            *(NAMES[-1], "io.modelcontextprotocol/logLevel", "org.example/logLevel", "meta"),
            {"log_level": "org.example/logLevel"},
            id="a key of _meta",
        ),
        pytest.param(
            *(WITH_EMPTY, "RelatedTaskMetadata", "OtherMetadata", "meta", {"related_task": None}),
            id="the type of a key of _meta",
        ),
        pytest.param(
            *(
                WITH_EMPTY,
                "structuredContent",
                "other",
                "behaviour",
                {"structured_content": "none"},
            ),
            id="structured content",
        ),
    ],
)
def test_a_fact_is_what_the_definitions_say(
    tmp_path: Path, name: str, old: str, new: str, table: str, expected: dict[str, Any]
) -> None:
    text = json.dumps(definitions_of(name))
    assert old in text
    fitted = getattr(fit_facts(tmp_path, json.loads(text.replace(old, new))).facts, table)
    assert {key: getattr(fitted, key) for key in expected} == expected


@pytest.mark.parametrize(
    ("names", "members", "lacks", "is_alike"),
    [
        (("Outcome",), (), (), True),
        (("Outcome",), ("x",), (), True),
        (("Outcome",), ("x", "y"), (), False),
        (("Outcome",), (), ("nextCursor",), False),
        (("Outcome",), ("x",), ("prompts",), False),
        (("Outcome", "Other"), (), (), False),
    ],
    ids=["all", "three of four", "three of five", "two of three", "not required", "two alike"],
)
def test_a_renamed_result_has_most_of_its_members(
    tmp_path: Path,
    names: tuple[str, ...],
    members: tuple[str, ...],
    lacks: tuple[str, ...],
    is_alike: bool,
) -> None:
    text = json.dumps(definitions_of(WITH_EMPTY)).replace("ListPromptsResult", "Outcome")
    definitions = json.loads(text)
    outcome = definitions["Outcome"]
    outcome["properties"] |= dict.fromkeys(members, TEXT)
    for wire in lacks:
        del outcome["properties"][wire]
    definitions |= dict.fromkeys(names, outcome)
    definitions |= {"Nothing": {"type": "object"}, "Empty": obj()}
    fit = fit_facts(tmp_path, definitions)
    result = "Outcome" if is_alike else "EmptyResult"
    assert fit.facts.results.client["prompts/list"] == (result,)


def test_another_lifecycle_makes_what_depends_on_it_a_guess(tmp_path: Path) -> None:
    definitions = definitions_of(WITH_EMPTY)
    members = definitions["ClientRequest"]["anyOf"]
    definitions["ClientRequest"]["anyOf"] = [
        one for one in members if "Initialize" not in one["$ref"]
    ]
    carried = facts.load(WITH_EMPTY)
    why = "the lifecycle is another one than that of the revision"
    assert [guess for guess in fit_facts(tmp_path, definitions).guesses if guess.why == why] == [
        Guess("/transports/streamable_http", carried.transports.streamable_http, WITH_EMPTY, why),
        Guess("/http/cancellation", carried.http.cancellation, WITH_EMPTY, why),
    ]


def test_a_known_method_gets_no_capability_by_its_name(tmp_path: Path) -> None:
    definitions = definitions_of(WITH_EMPTY)
    definitions["ServerCapabilities"]["properties"]["ping"] = obj()
    fit = fit_facts(tmp_path, definitions)
    assert fit.facts.capability("ping") == ()
    names = [*fit.facts.capabilities]
    assert names == sorted(names, key=lambda name: (name.startswith("notifications"), name))


@pytest.mark.parametrize("name", NAMES)
def test_facts_written_as_text_are_read_back_without_guesses(tmp_path: Path, name: str) -> None:
    more = {"PaintResult": obj(colour=TEXT)}
    path = save_schema(tmp_path, with_request(name, "Paint", "paint/x", **more))
    loaded = schema.load_file(path)
    first = schema_facts.facts_for(loaded, name, None)
    file = tmp_path / "all.toml"
    file.write_text(pipeline.facts_text(schema_sources.of_file(path)))
    again = schema_facts.facts_for(loaded, name, file)
    assert (again.guesses, again.carried) == ((), ())
    for one in vars(first.facts).keys() - {"source", "results"}:
        assert getattr(again.facts, one) == getattr(first.facts, one), one
    for side in ("client", "server"):
        before, after = (getattr(one.facts.results, side) for one in (first, again))
        assert before.items() <= after.items()


def text_of(folder: Path, definitions: Mapping[str, Any], stated: str = "") -> list[str]:
    """The lines that `mcpgen facts` prints for a schema of these definitions."""
    file = folder / "own.toml"
    file.write_text(stated)
    source = schema_sources.of_file(save_schema(folder, definitions), file if stated else None)
    return pipeline.facts_text(source).splitlines()


def test_the_text_says_of_each_fact_where_it_comes_from(tmp_path: Path) -> None:
    definitions = with_request(WITH_EMPTY, "Paint", "tools/paint")
    del definitions["CallToolResult"]["properties"]["structuredContent"]
    lines = text_of(tmp_path, definitions, "[http]\naccepted = 204\n")
    own = tmp_path / "own.toml"
    assert f"accepted = 204  # from {own}" in lines
    assert f"rejected = 400  # carried over from {WITH_EMPTY}" in lines
    assert 'unreadable_id = "omit"  # from the schema' in lines
    changed = f'# from the schema; "object" in {WITH_EMPTY}'
    assert f'structured_content = "none"  {changed}' in lines
    at = lines.index('"tools/paint" = "tools"')
    assert lines[at - 1] == "# A guess: named like the method."
    at = lines.index('[methods."tools/paint"]')
    assert lines[at - 1] == "# A guess: nothing is stated of the method."


@pytest.mark.parametrize("name", NAMES)
def test_the_text_has_the_result_of_every_request(tmp_path: Path, name: str) -> None:
    more = {"PaintResult": obj(colour=TEXT), "DrawRequest": obj("method", method=const("draw"))}
    definitions = with_request(name, "Paint", "tools/paint", **more)
    lines = text_of(tmp_path, definitions)
    assert '"tools/paint" = ["PaintResult"]  # from the schema' in lines
    results = tomllib.loads("\n".join(lines))["results"]
    messages = [definitions[one["$ref"][8:]] for one in definitions["ClientRequest"]["anyOf"]]
    requests = {message["properties"]["method"]["const"] for message in messages}
    assert requests == results["client"].keys()


TYPOS = {
    "a key": ("[http]\nacepted = 1", "#/http/acepted: expected one", "nearest being accepted"),
    "a method": (
        '[capabilities]\n"tool/call" = "tools"',
        "#/capabilities/tool~1call: expected a method",
        "nearest being tools/call",
    ),
    "a base": ('based_on = "2025-11-26"', "#/based_on: expected one of the revisions", NAMES[0]),
}


@pytest.mark.parametrize(("text", "place", "nearest"), TYPOS.values(), ids=TYPOS)
def test_a_typo_is_refused_with_the_nearest_name(
    tmp_path: Path, text: str, place: str, nearest: str
) -> None:
    with pytest.raises(FactsError) as raised:
        text_of(tmp_path, definitions_of(WITH_EMPTY), text)
    assert str(raised.value).startswith(f"{tmp_path / 'own.toml'}{place}")
    assert nearest in str(raised.value)


def test_the_nearest_revision_is_that_with_the_most_in_common(tmp_path: Path) -> None:
    for name in NAMES:
        definitions = copy.deepcopy(definitions_of(name))
        definitions["Tool"]["properties"]["colour"] = TEXT
        definitions["Colours"] = any_of("Tool", "Implementation")
        near = schema.read_file(save_schema(tmp_path, definitions)).nearest
        assert near.entry.name == name
        count = len(definitions)
        assert f", {count - 1} of {count} definitions, " in near.why
