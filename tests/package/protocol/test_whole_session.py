"""A session in which everything that a revision has is said once: its messages are as specified."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kit.ends import Pair
from kit.rules import revisions_holding
from kit.samples import PARAMS, RESULTS, URI
from kit.wire import ALL_LISTS, CANCELLED, LISTEN, every, facts, modern, sole
from mcpgen_runtime import (
    REVISIONS,
    MethodNotFoundError,
    MissingCapabilityError,
    ProtocolError,
    ResourceNotFoundError,
)
from mcpgen_runtime.errors import InternalError
from mcpgen_runtime.facts import Role, other
from mcpgen_runtime.protocol.events import (
    CancelRequest,
    CloseStreams,
    NotificationReceived,
    ReportProgress,
    SendLog,
)

ROLES: tuple[Role, ...] = ("client", "server")
OPENING = frozenset({"initialize"})
RESULTS_OF_TASKS = {("server", "tasks/result"): RESULTS["elicitation/create"]}
ANSWERED_BY_CONNECTION = {"ping", "server/discover", "logging/setLevel", LISTEN}


def whole_session(revision: str) -> Pair:
    """A pair after both ends have said all they can say."""
    pair = Pair(revision)
    for role in ROLES:
        for method in pair.revision.requests_from(role).keys() - OPENING:
            _ask_and_answer(pair, role, method)
    if LISTEN in pair.revision.client_requests:
        wanted = {**ALL_LISTS, "resourceSubscriptions": [URI]}
        pair.ask("client", LISTEN, {"notifications": wanted})
    else:
        pair.ask("client", "resources/subscribe", PARAMS["resources/subscribe"])
        pair.answer("server", None)
    for role in ROLES:
        for name in pair.revision.notifications_from(role).keys() & PARAMS.keys():
            pair.notify(role, name, PARAMS[name])
    _work_and_cancel(pair)
    for error in (
        ProtocolError("mine", code=17, data=[1]),
        ProtocolError("nothing to add", data=None),
        InternalError("internal error"),
        ResourceNotFoundError(URI),
        MethodNotFoundError("x"),
        MissingCapabilityError(("sampling",), "x"),
    ):
        pair.ask("client", "resources/read", PARAMS["resources/read"])
        pair.answer("server", error)
    return pair


def _ask_and_answer(pair: Pair, role: Role, method: str) -> None:
    pair.ask(role, method, PARAMS[method], progress=method == "tools/call")
    if method not in ANSWERED_BY_CONNECTION:
        pair.answer(other(role), RESULTS_OF_TASKS.get((role, method), RESULTS.get(method)))
    if pair.revision.requests_from(role)[method].facts.input_required:
        wanted: dict[str, Mapping[str, Any]] = {
            name: {"method": name, **({"params": PARAMS[name]} if PARAMS[name] else {})}
            for name in pair.revision.input_requests
        }
        result = {"resultType": "input_required", "inputRequests": wanted, "requestState": "s"}
        pair.ask(role, method, PARAMS[method])
        pair.answer(other(role), result)


def _work_and_cancel(pair: Pair) -> None:
    log_key = facts(pair.revision.name).meta.log_level
    meta = {log_key: "debug"} if log_key else None
    id = pair.ask("client", "tools/call", PARAMS["tools/call"], progress=True, meta=meta)
    for command in (
        ReportProgress(id, 1, 2, "half"),
        ReportProgress(id, 1.5),
        SendLog(id, "error", {"a": [1]}, "db"),
    ):
        pair.deliver("server", sole(pair.server.send(command)))
    pair.deliver("client", sole(pair.client.send(CancelRequest(id, "no more"))))


class Official:
    """The official schema of a revision."""

    def __init__(self, spec: Path, revision: str) -> None:
        path = spec / "schema" / revision / "schema.json"
        self._schema: dict[str, Any] = json.loads(path.read_text("utf-8"))
        self._key = "$defs" if "$defs" in self._schema else "definitions"
        self._definitions: dict[str, Any] = self._schema[self._key]
        self._of_method = {
            definition["properties"]["method"]["const"]: name
            for name, definition in self._definitions.items()
            if "const" in definition.get("properties", {}).get("method", {})
        }

    def check(self, instance: Any, *names: str) -> None:
        """Validate against the first definition of these that there is."""
        name = next(name for name in names if name in self._definitions)
        whole = {**self._schema, "$ref": f"#/{self._key}/{name}"}
        jsonschema.validators.validator_for(self._schema)(whole).validate(instance)

    def check_call(self, message: dict[str, Any]) -> None:
        """Validate a request or notification by the definition of its method."""
        self.check(message, "JSONRPCRequest" if "id" in message else "JSONRPCNotification")
        self.check(message, self._of_method[message["method"]])

    def check_response(self, method: str, message: dict[str, Any]) -> None:
        """Validate the answer to a method."""
        if "error" in message:
            self.check(message, "JSONRPCErrorResponse", "JSONRPCError")
            return
        self.check(message, "JSONRPCResultResponse", "JSONRPCResponse")
        stem = self._of_method[method].removesuffix("Request")
        if message["result"].get("resultType") == "input_required":
            self.check(message["result"], "InputRequiredResult")
        else:
            self.check(message["result"], f"{stem}Result", "EmptyResult")


@pytest.mark.requirement("jsonrpc.schema-is-authority", "jsonrpc.request-shape")
@pytest.mark.requirement("jsonrpc.error-fields", "lifecycle.respect-version-must")
@pytest.mark.requirement("versioning.legacy-client-dual-server", "discover.result-shape")
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.schema-is-authority"))
def test_every_message_is_valid_by_the_official_schema(spec: Path, revision: str) -> None:
    official, asked = Official(spec, revision), {}
    for sender, message in whole_session(revision).wire:
        official.check(message, "JSONRPCMessage")
        if "method" in message:
            official.check_call(message)
            asked[sender, message.get("id")] = message["method"]
        else:
            official.check_response(asked[other(sender), message["id"]], message)


@pytest.mark.requirement("jsonrpc.schema-is-authority", "jsonrpc.notification-no-response")
@pytest.mark.requirement("versioning.deprecated-still-works")
@every
def test_everything_that_the_revision_has_is_said_and_heard(revision: str) -> None:
    pair, known = whole_session(revision), REVISIONS[revision]
    for role in ROLES:
        told = {event.method.name for event in pair.told(other(role), NotificationReceived)}
        assert told >= known.notifications_from(role).keys() & PARAMS.keys()
        said = {message.get("method") for message in pair.sent(role)} - {None}
        there = {*known.requests_from(role), *known.notifications_from(role)}
        of_the_other_end = {"notifications/cancelled", "notifications/progress"} - said
        assert said == there - of_the_other_end


SHAPES = {
    "request": {"jsonrpc", "id", "method"},
    "notification": {"jsonrpc", "method"},
    "response": {"jsonrpc", "id", "result"},
    "error": {"jsonrpc", "id", "error"},
}


@pytest.mark.requirement("jsonrpc.version-member", "jsonrpc.notification-no-id")
@pytest.mark.requirement("jsonrpc.request-shape", "jsonrpc.response-exactly-one")
@pytest.mark.requirement("seed-compat.dollar-cancel-request", "seed-compat.dollar-progress")
@pytest.mark.requirement("jsonrpc.batch-no-initialize", "jsonrpc.batch-removed")
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.version-member"))
def test_each_message_is_one_of_four_kinds_which_transports_can_read(revision: str) -> None:
    messages = whole_session(revision).messages
    assert {message.kind for message in messages} == SHAPES.keys()
    for message in messages:
        wire = json.loads(message.data)
        assert wire.keys() - {"params"} == SHAPES[message.kind]
        assert wire["jsonrpc"] == "2.0"
        assert wire.get("id", message.kind) is not None
        assert not message.method.startswith("$/")
        assert (message.id, message.method) == (wire.get("id"), wire.get("method", ""))
        assert message.is_response == ("method" not in wire)
        assert message.error_code == wire.get("error", {}).get("code")
        if message.is_response:
            assert message.related_request_id == wire["id"]
        elif message.method == "notifications/progress":
            assert message.related_request_id == wire["params"]["progressToken"]  # also the id
        assert message.revision is None or message.revision.name == revision


@pytest.mark.requirement("cancellation.server-only-for-listen")
@modern
def test_a_server_cancels_nothing_but_subscriptions(revision: str) -> None:
    pair = whole_session(revision)
    for send in pair.server.send(CloseStreams()):
        pair.deliver("server", send)
    listened = [m["id"] for m in pair.sent("client") if m["method"] == LISTEN]
    ended = [m["params"]["requestId"] for m in pair.sent("server") if m.get("method") == CANCELLED]
    assert ended == listened
    assert ended
