"""Attributes of outgoing messages that transports read, compared with the message's JSON."""

from __future__ import annotations

import json

import pytest

from mcp_protocol.channel import OutgoingMessage
from mcp_protocol.errors import InvalidParamsError
from mcp_protocol.revisions import REVISIONS
from package.protocol.pair import Pair
from package.protocol.traffic import whole_session

ALL = tuple(REVISIONS)


def kind_on_the_wire(message: OutgoingMessage) -> str:
    """The kind of a message by the members of its JSON."""
    wire = json.loads(message.data)
    if "method" in wire:
        return "request" if "id" in wire else "notification"
    return "response" if "result" in wire else "error"


@pytest.mark.parametrize("revision", ALL)
def test_kind_id_and_method_are_those_of_the_json(revision: str) -> None:
    messages = whole_session(revision).messages
    assert {message.kind for message in messages} == {
        "request",
        "notification",
        "response",
        "error",
    }
    for message in messages:
        wire = json.loads(message.data)
        assert message.kind == kind_on_the_wire(message)
        assert message.is_response == ("method" not in wire)
        assert message.id == wire.get("id")
        assert message.method == wire.get("method", "")
        assert message.error_code == wire.get("error", {}).get("code")


@pytest.mark.parametrize("revision", ALL)
def test_messages_about_a_received_request_name_it(revision: str) -> None:
    for message in whole_session(revision).messages:
        wire = json.loads(message.data)
        if message.is_response:
            assert message.related_request_id == wire["id"]
        elif message.method == "notifications/progress":
            # The token of a request of ours is its id.
            assert message.related_request_id == wire["params"]["progressToken"]


@pytest.mark.parametrize("revision", ALL)
def test_messages_name_the_agreed_revision(revision: str) -> None:
    pair = Pair(revision)
    pair.ask("client", "tools/list")
    pair.answer("server", InvalidParamsError("no"))
    assert {str(message.revision and message.revision.name) for message in pair.messages} == {
        revision
    }


@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("other", ALL)
def test_a_result_of_another_revision_becomes_one_of_its_own(revision: str, other: str) -> None:
    foreign = REVISIONS[other].client_requests["tools/list"].result
    assert foreign is not None
    pair = Pair(revision)
    pair.ask("client", "tools/list")
    pair.answer("server", foreign(tools=[]))
    assert pair.wire[-1][1]["result"]["tools"] == []
