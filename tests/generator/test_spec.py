"""Specs: everything a template may see, for one revision and for a package."""

from __future__ import annotations

import pytest

from generator.schemas import TEXT, any_of, const, facts_of, obj, ref, schema_of
from generator.tiny_package import REVISION, tiny_spec
from mcpgen import schema
from mcpgen.schema import docs, facts
from mcpgen.schema.docs import Docs
from mcpgen.spec import building, stages
from mcpgen.spec.packages import RevisionSpec

NAMES = [row.name for row in schema.revisions()]


@pytest.fixture(scope="module")
def specs() -> list[RevisionSpec]:
    """Every revision that mcpgen has, newest first."""
    texts = docs.load()
    return [
        stages.revision_spec(schema.load(name), facts.load(name), texts) for name in reversed(NAMES)
    ]


def test_revisions_of_a_package_are_in_order(specs: list[RevisionSpec]) -> None:
    package = building.package(specs, "pkg")
    assert [revision.name for revision in package.revisions] == NAMES


def test_a_type_names_the_revisions_that_have_it(specs: list[RevisionSpec]) -> None:
    types = {type_.name: type_.folders for type_ in building.package(specs, "pkg").types}
    assert len(types["Tool"]) == len(NAMES)
    assert len(types["CallToolRequestParams"]) == len(NAMES)
    assert list(types) == sorted(types)
    assert len(types["CreateTaskResult"]) == 1


def test_the_types_that_a_revision_must_have_are_there(specs: list[RevisionSpec]) -> None:
    for revision in specs:
        assert set(revision.roles.values()) <= set(revision.types)


def test_constants_of_a_revision_are_all_different(specs: list[RevisionSpec]) -> None:
    for revision in specs:
        constants = [row.constant for row in revision.tables.all]
        assert len(constants) == len(set(constants)), revision.name


def test_a_method_that_both_may_send_has_a_constant_for_each(specs: list[RevisionSpec]) -> None:
    oldest = specs[-1]
    pings = {row.constant for row in oldest.tables.all if row.name == "ping"}
    assert pings == {"CLIENT_PING", "SERVER_PING"}


def test_only_revisions_with_server_requests_let_a_server_send(
    specs: list[RevisionSpec],
) -> None:
    for revision in specs:
        assert bool(revision.tables.server_requests) is (revision.lifecycle == "HANDSHAKE")


def test_a_package_has_unset_only_if_json_values_may_be_absent(
    specs: list[RevisionSpec],
) -> None:
    newest, *others = specs
    assert newest.has_unset  # structuredContent
    assert not any(revision.has_unset for revision in others)
    assert building.package(specs, "pkg").has_unset
    assert not building.package(others, "pkg").has_unset


def test_values_of_the_result_type_come_from_the_defaults(specs: list[RevisionSpec]) -> None:
    assert specs[0].result_types == ("complete", "input_required")
    assert specs[-1].result_types == ()


def test_items_of_a_page_have_their_python_name(specs: list[RevisionSpec]) -> None:
    rows = {row.name: row.items for row in specs[0].tables.client_requests}
    assert rows["resources/templates/list"] == "resource_templates"
    assert rows["tools/call"] is None


def test_a_schema_without_connection_types_gets_empty_ones() -> None:
    source = schema_of(
        AskRequest=obj("method", method=const("ask")),
        AskResult=obj(x=TEXT),
        ClientRequest=any_of("AskRequest"),
    )
    built = stages.revision_spec(source, facts_of(), Docs())
    assert built.roles["implementation"] == "Implementation"
    assert built.models.normal.definitions["Implementation"].properties == {}


def test_a_renamed_connection_type_is_that_of_its_member() -> None:
    source = schema_of(
        Who=obj(name=TEXT),
        InitializeRequestParams=obj(clientInfo=ref("Who")),
        InitializeRequest=obj("method", method=const("a"), params=ref("InitializeRequestParams")),
        InitializeResult=obj(x=TEXT),
        ClientRequest=any_of("InitializeRequest"),
    )
    assert stages.revision_spec(source, facts_of(), Docs()).roles["implementation"] == "Who"


def test_every_type_and_field_has_a_docstring_or_needs_none() -> None:
    tiny = tiny_spec()
    assert tiny.name == REVISION
    assert tiny.models.docs["TextNote"].text == '"""A note in words."""'
    assert tiny.models.docs["ListNotesResult"].text.endswith(' Source: server/notes."""')
