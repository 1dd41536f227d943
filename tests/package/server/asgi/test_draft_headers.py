"""Clients of the draft between two revisions: sessions, with header fields that repeat the body."""

from __future__ import annotations

from typing import Any

import pytest

from kit.asgi_client import SESSION, asgi, speaking
from kit.web import Web
from kit.wire import INITIALIZED, PER_REQUEST, SESSIONS, facts, initialize, request
from mcpgen_runtime import Server
from requirements import INTERIM

pytestmark = pytest.mark.processes

DRAFT = tuple(name for name in SESSIONS if facts(name).draft.method is not None)
draft = pytest.mark.parametrize("revision", DRAFT)
METHOD, NAME = "mcp-method", "mcp-name"


def marked_tool(**arguments: Any) -> dict[str, Any]:
    return request(DRAFT[0], "tools/call", {"name": "marked", "arguments": arguments}, id=7)


@pytest.mark.requirement("headers.interim-base", "http.interim-base", revisions=INTERIM)
@pytest.mark.requirement("headers.interim-missing-conditions", revisions=INTERIM)
@draft
@pytest.mark.parametrize("asked", ["the draft", *DRAFT])
async def test_a_client_of_the_draft_is_served_in_a_session(revision: str, asked: str) -> None:
    web = Web()
    async with asgi(web.server) as http:
        reply = await http.post(initialize(asked), **{METHOD: "initialize"})
        assert reply.result["protocolVersion"] == revision
        http.fields[SESSION] = reply.fields[SESSION]
        fields = {METHOD: "notifications/initialized"}
        assert (await http.post(INITIALIZED, **fields)).status == 202
        for field, value in (("Eu-1", "Eu-1"), ("=?base64?w7g=?=", "\u00f8"), ("=?x", "=?x")):
            fields = {METHOD: "tools/call", NAME: "marked", "mcp-param-region": field}
            reply = await http.post(marked_tool(region=value), **fields)
            assert reply.text == "done"
        fields = {METHOD: "resources/read", NAME: "memo://one"}
        message = request(revision, "resources/read", {"uri": "memo://one"})
        assert (await http.post(message, **fields)).result["contents"][0]["text"] == "a memo"
        fields = {METHOD: "tools/call", NAME: "logs"}
        message = request(revision, "tools/call", {"name": "logs", "arguments": {}})
        reply = await http.post(message, **fields)
        assert reply.fields["x-accel-buffering"] == "no"
        assert reply.events[0].data == b""
        again = await http.get(**{"last-event-id": reply.events[0].id})
        assert [each.data for each in again.events] == [each.data for each in reply.events[1:]]
        assert (await http.delete()).status == 200


@pytest.mark.requirement("headers.interim-code", "headers.interim-param-code", revisions=INTERIM)
@draft
@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({METHOD: "tools/list"}, "Mcp-Method"),
        ({NAME: "unmarked"}, "Mcp-Name"),
        ({METHOD: "tools/call", NAME: "Marked"}, "Mcp-Name"),
        ({METHOD: "tools/call", NAME: "=?base64?!?="}, "Mcp-Name"),
        ({METHOD: "tools/call", NAME: "marked", "mcp-param-region": "eu-2"}, "Mcp-Param-Region"),
        ({METHOD: "tools/call", "mcp-param-count": "6"}, "Mcp-Param-Count"),
        ({METHOD: "tools/call", "mcp-param-dry": "true"}, "Mcp-Param-Dry"),
    ],
)
async def test_a_field_that_contradicts_the_body_is_refused(
    revision: str, fields: dict[str, str], named: str
) -> None:
    web = Web()
    async with speaking(web.server, revision) as http:
        reply = await http.post(marked_tool(region="eu-1", count=5), **fields)
        assert (reply.status, reply.code, reply.json["id"]) == (400, -32001, 7)
        assert named in reply.json["error"]["message"]
        assert web.called == []


@draft
@pytest.mark.parametrize(
    "fields", [{}, {METHOD: "tools/call"}, {NAME: "marked"}, {"mcp-param-region": "x"}]
)
async def test_no_field_is_required_since_such_clients_send_none(
    revision: str, fields: dict[str, str]
) -> None:
    web = Web()
    async with speaking(web.server, revision) as http:
        reply = await http.post(marked_tool(region="eu-1"), **fields)
        assert reply.text == "done"


@pytest.mark.parametrize("revision", sorted(set(SESSIONS) - set(DRAFT)))
async def test_where_no_draft_followed_such_fields_mean_nothing(revision: str) -> None:
    async with speaking(Web().server, revision) as http:
        reply = await http.post(marked_tool(region="eu-1"), **{METHOD: "ping", NAME: "other"})
        assert reply.text == "done"


@pytest.mark.requirement(
    "http.interim-delete-405-allow", "http.interim-get-405-allow", revisions=INTERIM
)
@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_method_that_is_not_served_gets_those_that_are(method: str) -> None:
    async with asgi(Web().only(*PER_REQUEST)) as http:
        reply = await http.request(method)
        assert (reply.status, reply.fields["allow"]) == (405, "POST")


@pytest.mark.requirement("headers.interim-name-charset", revisions=INTERIM)
@pytest.mark.parametrize("name", ["Region:Primary", "Region\x00"])
def test_a_tool_whose_mark_is_no_token_is_refused(name: str) -> None:
    def tool(**arguments: Any) -> str:
        return ""

    properties = {"a": {"type": "string", "x-mcp-header": name}}
    with pytest.raises(ValueError, match="a: x-mcp-header: expected an HTTP token"):
        Server("s").tool(input_schema={"type": "object", "properties": properties})(tool)
