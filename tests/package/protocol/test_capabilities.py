"""Capabilities: what each side declares, and what neither does without."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from kit.live import sample_server
from kit.rules import revision_fixture, revisions_holding
from kit.samples import PARAMS, URI
from kit.wire import (
    ALL,
    ALL_LISTS,
    UPDATED,
    ClientEnd,
    ServerEnd,
    facts,
    initialize,
    meta_of,
    request,
    sole,
    speaking_to,
    tag,
)
from mcpgen_runtime import REVISIONS, MissingCapabilityError, RequestContext, Server
from mcpgen_runtime.client.chosen import ChosenApplication
from mcpgen_runtime.client.client_settings import Identity
from mcpgen_runtime.protocol.client_connection import ClientConnection
from mcpgen_runtime.protocol.events import (
    OpenSession,
    ReportProgress,
    RequestFailed,
    SendError,
    SendLog,
    SendNotification,
    SendResponse,
)
from mcpgen_runtime.protocol.lifecycle import is_declared
from mcpgen_runtime.protocol.server_connection import ServerConnection
from requirements import EVERY_REVISION

revision = revision_fixture(ALL)

LISTS = {"tools": "tools/list", "prompts": "prompts/list", "resources": "resources/list"}
EVERYTHING: Mapping[str, Any] = {
    "roots": {"listChanged": True},
    "sampling": {"context": {}, "tools": {}},
    "elicitation": {"form": {}, "url": {}},
    "tasks": {"list": {}, "cancel": {}, "requests": {}},
    "extensions": {"com.example/x": {}},
    "experimental": {"x": {"y": 1}},
    "future": {},
}


WILLING: Any = SimpleNamespace(mcp_handler=lambda method: keep_nothing)
"""Handlers for whatever a server may ask."""


async def keep_nothing(params: Any, ctx: RequestContext) -> None:
    """Handle anything."""


def client_declares(revision: str, handlers: Any, more: Mapping[str, Any]) -> Any:
    """The capabilities in the first message of a client."""
    application = ChosenApplication(handlers, Identity({"name": "c", "version": "1"}, more))
    connection = ClientConnection(REVISIONS.only(revision), application.describe)
    params = json.loads(sole(connection.send(OpenSession())).data)["params"]
    key = facts(revision).meta.client_capabilities
    return params["capabilities"] if key is None else params["_meta"][key]


TASKS: dict[str, Any] = {"tasks": {"list": {}, "requests": {"tools": {"call": {}}}}}


def server_declares(revision: str, server: Server) -> Any:
    """The capabilities that a server's answer to the opening has."""
    end = ServerEnd(None)
    end.connection = ServerConnection(REVISIONS, server.describe)
    if "initialize" in REVISIONS[revision].client_requests:
        return end.say(initialize(revision))[0]["result"]["capabilities"]
    return end.say(request(revision, "server/discover"))[0]["result"]["capabilities"]


@pytest.mark.requirement("capabilities.client-set-2024", "capabilities.client-set-2025-06")
@pytest.mark.requirement("capabilities.client-set-2025-11", "capabilities.client-set-2026")
@pytest.mark.parametrize("handlers", [WILLING, None], ids=["willing", "none"])
def test_a_client_declares_what_the_revision_has_and_no_more(revision: str, handlers: Any) -> None:
    sets = {
        "capabilities.client-set-2024": {"roots", "sampling", "experimental"},
        "capabilities.client-set-2025-06": {"roots", "sampling", "elicitation", "experimental"},
        "capabilities.client-set-2025-11": set(EVERYTHING) - {"extensions", "future"},
        "capabilities.client-set-2026": set(EVERYTHING) - {"tasks", "future"},
    }
    (known,) = (known for id, known in sets.items() if revision in revisions_holding(id))
    capabilities = client_declares(revision, handlers, EVERYTHING)
    assert set(capabilities) == known | {"extensions"}  # declared in each revision
    expected = (
        {}
        if revision in revisions_holding("capabilities.client-set-2026")
        else {"listChanged": True}
    )
    assert capabilities["roots"] == expected
    assert capabilities["experimental"] == {"x": {"y": 1}}


@pytest.mark.requirement("capabilities.server-set-2024", "capabilities.server-set-2025")
@pytest.mark.requirement("capabilities.server-set-2025-11", "capabilities.server-set-2026")
@pytest.mark.requirement("capabilities.server-features-advertised")
def test_a_server_declares_what_the_revision_has_and_no_more(revision: str) -> None:
    features: dict[str, Any] = {
        "tools": {"listChanged": True},
        "prompts": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
        "logging": {},
        "experimental": {"x": {}},
    }
    if revision not in revisions_holding("capabilities.server-set-2024"):
        features["completions"] = {}
    if "tasks/list" in REVISIONS[revision].client_requests:
        features |= TASKS
    more = {"experimental": {"x": {}}, "future": {}, **TASKS}
    server = sample_server(subscribe=True, capabilities=more)
    assert server_declares(revision, server) == features
    assert server_declares(revision, Server("bare", logging=False)) == {}


@pytest.mark.requirement("capabilities.server-set-2024")
@pytest.mark.parametrize("revision", revisions_holding("capabilities.server-set-2024"))
def test_completion_needs_no_capability_where_there_is_none(revision: str) -> None:
    client = ClientEnd(revision, server={})
    asked = client.ask("completion/complete", PARAMS["completion/complete"])
    failed = client.respond(asked, error={"code": -32601, "message": "no"})
    assert isinstance(failed, RequestFailed)


@pytest.mark.requirement("capabilities.server-features-advertised", "discover.capabilities-true")
async def test_a_server_answers_advertised_methods_and_no_others(revision: str) -> None:
    for server in (sample_server(), Server("bare", logging=False)):
        capabilities = server_declares(revision, server)
        async with speaking_to(server, revision) as end:
            for capability, method in LISTS.items():
                answer = await end.ask(method)
                refused = answer.get("error", {}).get("code") == -32601
                assert refused is (capability not in capabilities)
            answer = await end.ask("completion/complete", PARAMS["completion/complete"])
            assert ("result" in answer) is ("tools" in capabilities)


@pytest.mark.requirement("capabilities.presence-is-support", revisions=EVERY_REVISION)
@pytest.mark.parametrize(
    ("capabilities", "path", "there"),
    [
        ({"tools": {}}, ("tools",), True),
        ({}, ("tools",), False),
        ({"tools": {"listChanged": True}}, ("tools", "listChanged"), True),
        ({"tools": {"listChanged": False}}, ("tools", "listChanged"), False),
        ({"tools": {}}, ("tools", "listChanged"), False),
        ({"tools": True}, ("tools", "listChanged"), False),
        ({}, (), True),
    ],
)
def test_a_capability_exists_by_its_key_and_a_flag_by_its_truth(
    capabilities: dict[str, Any], path: tuple[str, ...], there: bool
) -> None:
    assert is_declared(capabilities, path) is there


@pytest.mark.requirement("capabilities.subflags-default-false")
@pytest.mark.parametrize("flag", [{}, {"listChanged": False}, {"listChanged": True}], ids=str)
@pytest.mark.parametrize("revision", revisions_holding("capabilities.subflags-default-false"))
def test_changes_of_lists_are_told_only_if_that_is_declared(
    revision: str, flag: dict[str, bool]
) -> None:
    server = ServerEnd(revision, {"tools": flag, "prompts": flag, "resources": flag})
    if "subscriptions/listen" in REVISIONS[revision].client_requests:
        server.ask("subscriptions/listen", {"notifications": ALL_LISTS})
    for kind in ("tools", "prompts", "resources"):
        told = server.send(SendNotification(f"notifications/{kind}/list_changed"))
        assert bool(told) is bool(flag.get("listChanged"))


@pytest.mark.requirement("capabilities.resource-updates-need-subscribe")
@pytest.mark.requirement("capabilities.subflags-default-false")
@pytest.mark.parametrize("flag", [{}, {"subscribe": False}, {"subscribe": True}], ids=str)
@pytest.mark.parametrize(
    "revision", revisions_holding("capabilities.resource-updates-need-subscribe")
)
def test_updates_of_resources_need_the_declared_subscription(
    revision: str, flag: dict[str, bool]
) -> None:
    server = ServerEnd(revision, {"resources": flag})
    answers = server.ask("resources/subscribe", {"uri": URI}, id=1)
    assert [answer["error"]["code"] for answer in answers] == (
        [] if flag.get("subscribe") else [-32601]
    )
    server.send(SendResponse(1))
    assert bool(server.send(SendNotification(UPDATED, {"uri": URI}))) is flag.get(
        "subscribe", False
    )
    assert server.send(SendNotification(UPDATED, {"uri": "memo://other"})) == []
    client = ClientEnd(revision, server={"resources": flag})
    if not flag.get("subscribe"):
        with pytest.raises(MissingCapabilityError):
            client.ask("resources/subscribe", {"uri": URI})


@pytest.mark.requirement("capabilities.resource-updates-need-listen")
@pytest.mark.requirement("meta.subscription-id-present")
@pytest.mark.parametrize("revision", revisions_holding("capabilities.resource-updates-need-listen"))
def test_updates_of_resources_go_to_the_streams_that_name_them(revision: str) -> None:
    server = ServerEnd(revision)
    assert server.send(SendNotification(UPDATED, {"uri": URI})) == []
    server.ask("subscriptions/listen", {"notifications": {"resourceSubscriptions": [URI]}}, id="s")
    assert server.send(SendNotification(UPDATED, {"uri": "memo://other"})) == []
    (message,) = server.send(SendNotification(UPDATED, {"uri": URI}))
    key = "io.modelcontextprotocol/subscriptionId"
    assert message["params"] == {"uri": URI, "_meta": {key: "s"}}


@pytest.mark.requirement("meta.subscription-id-present", "meta.subscription-id-absent")
@pytest.mark.parametrize("revision", revisions_holding("meta.subscription-id-absent"))
def test_only_what_a_subscription_tells_is_marked_with_its_id(revision: str) -> None:
    server = ServerEnd(revision)
    (first,) = server.ask("subscriptions/listen", PARAMS["subscriptions/listen"], id=7)
    (change,) = server.send(SendNotification("notifications/tools/list_changed"))
    for marked in (first, change):
        assert marked["params"]["_meta"] == {tag(revision): 7}
    meta = {"progressToken": "t", facts(revision).meta.log_level or "": "debug"}
    server.ask("tools/call", PARAMS["tools/call"], id=8, meta=meta)
    for command in (ReportProgress(8, 1), SendLog(8, "info", "x")):
        (message,) = server.send(command)
        assert tag(revision) not in message["params"].get("_meta", {})


@pytest.mark.requirement("capabilities.sampling-needs-declaration", "capabilities.per-request")
@pytest.mark.requirement("capabilities.not-relied-on-undeclared", "capabilities.missing-error")
@pytest.mark.requirement("meta.request-fields-not-from-history")
@pytest.mark.requirement("capabilities.respected-interaction")
@pytest.mark.parametrize("method", ["sampling/createMessage", "elicitation/create", "roots/list"])
@pytest.mark.parametrize("revision", revisions_holding("capabilities.missing-error"))
def test_a_server_requests_no_input_that_was_not_declared(revision: str, method: str) -> None:
    (needed,) = REVISIONS[revision].input_requests[method].capability
    wanted = {"resultType": "input_required", "inputRequests": {"a": {"method": method}}}
    if PARAMS[method]:
        wanted["inputRequests"] = {"a": {"method": method, "params": PARAMS[method]}}
    server = ServerEnd(revision)
    server.ask("tools/call", PARAMS["tools/call"], id=1, capabilities={needed: {}})
    (message,) = server.send(SendResponse(1, wanted))
    assert message["result"]["inputRequests"]["a"]["method"] == method
    server.ask("tools/call", PARAMS["tools/call"], id=2, capabilities={})
    with pytest.raises(MissingCapabilityError) as missing:
        server.send(SendResponse(2, wanted))
    (refusal,) = server.send(SendError(2, missing.value))
    assert refusal["id"] == 2
    error = refusal["error"]
    assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": {needed: {}}})


@pytest.mark.requirement("meta.request-client-capabilities", "meta.request-protocol-version")
@pytest.mark.requirement("jsonrpc.params-required-modern")
@pytest.mark.parametrize("own", [{}, {"elicitation": {"form": {}}}], ids=str)
@pytest.mark.parametrize("revision", revisions_holding("meta.request-client-capabilities"))
def test_every_client_request_states_revision_and_capabilities(
    revision: str, own: dict[str, Any]
) -> None:
    client = ClientEnd(revision, own)
    expected = meta_of(revision, own) | {
        "io.modelcontextprotocol/clientInfo": {"name": "client", "version": "1"}
    }
    assert client.opening["params"]["_meta"] == expected
    for method in REVISIONS[revision].client_requests:
        fitting = PARAMS.get(method, {})
        for params in (fitting, {**fitting, "_meta": {"x": 1}}):
            meta = client.ask(method, params, meta={"com.example/y": 2})["params"]["_meta"]
            assert meta.items() >= expected.items()
