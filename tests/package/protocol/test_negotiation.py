"""How a client opens: the first messages it sends, and what it makes of each answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from kit.rules import revisions_holding, with_another
from kit.wire import (
    ALL,
    HANDSHAKE,
    PER_REQUEST,
    describe_as,
    encode_message,
    every,
    facts,
    meta_of,
    opening_result,
    sent_messages,
    sole,
)
from mcpgen_runtime import (
    REVISIONS,
    ConnectFailedError,
    HttpStatusError,
    LocalProtocolError,
    McpError,
    RemoteError,
    RemoteProtocolError,
    ResponseLostError,
    RevisionError,
)
from mcpgen_runtime.errors import RequestLost
from mcpgen_runtime.facts import Lifecycle, Revisions
from mcpgen_runtime.protocol.client_connection import ClientConnection
from mcpgen_runtime.protocol.events import (
    Event,
    Ignored,
    Opened,
    OpenFailed,
    OpenSession,
    Send,
    StepTimedOut,
)
from mcpgen_runtime.protocol.lifecycle import Description
from mcpgen_runtime.protocol.probe import Probe
from requirements import EVERY_REVISION

NEWEST, OLDEST = HANDSHAKE[-1], HANDSHAKE[0]


class Newcomer:
    """A client that opens, with all that it sends and hears."""

    def __init__(self, revisions: Revisions = REVISIONS) -> None:
        self.connection = ClientConnection(revisions, describe_as({"roots": {}}, "client"))
        self.sent: list[dict[str, Any]] = [
            json.loads(sole(self.connection.send(OpenSession())).data)
        ]
        self.events: list[Event] = []

    @property
    def methods(self) -> list[str]:
        """Methods of the messages sent so far."""
        return [message["method"] for message in self.sent]

    def hear(self, **answer: Any) -> None:
        """Answer its last request."""
        id = [message["id"] for message in self.sent if "id" in message][-1]
        self._take(self.connection.receive(encode_message({"jsonrpc": "2.0", "id": id, **answer})))

    def lose(self, failure: McpError) -> None:
        """Let its last request fail by the transport."""
        id = [message["id"] for message in self.sent if "id" in message][-1]
        self._take(self.connection.receive(RequestLost(id, failure)))

    def wait_in_vain(self) -> None:
        """Leave its last request without answer."""
        if self.is_probing():
            self._take(self.connection.receive(StepTimedOut()))

    def is_probing(self) -> bool:
        """Whether a missing answer would mean a server with a handshake."""
        return isinstance(self.connection.step, Probe)

    def refused(self) -> Exception:
        """The error that its opening ended with."""
        (event,) = (event for event in self.events if isinstance(event, OpenFailed))
        assert self.connection.session is None
        return event.error

    def agreed(self) -> str:
        """The revision that its opening ended with."""
        (event,) = (event for event in self.events if isinstance(event, Opened))
        assert self.connection.session is not None
        return event.revision.name

    def _take(self, events: list[Event]) -> None:
        self.events += [event for event in events if not isinstance(event, Send)]
        self.sent += sent_messages(events)


def initialize_result(revision: str, **changed: Any) -> dict[str, Any]:
    """A result of initialize, with members changed, or taken out by `...`."""
    result = {**opening_result(NEWEST, {}), "protocolVersion": revision, **changed}
    return {name: value for name, value in result.items() if value is not ...}


def discover_result(*supported: str, **changed: Any) -> dict[str, Any]:
    """A result of server/discover."""
    return {**opening_result(PER_REQUEST[-1], {}), "supportedVersions": [*supported], **changed}


def error(code: int, data: Any = None) -> dict[str, Any]:
    """An error object."""
    return {"code": code, "message": "no"} | ({} if data is None else {"data": data})


LEGACY = REVISIONS.of(Lifecycle.HANDSHAKE)
MODERN = REVISIONS.of(Lifecycle.PER_REQUEST)


@pytest.mark.requirement("lifecycle.initialize-first", "lifecycle.initialize-by-client")
@pytest.mark.requirement("versioning.client-supported", "versioning.no-modern-in-initialize")
@pytest.mark.requirement("lifecycle.implementation-basic", "jsonrpc.batch-no-initialize")
@pytest.mark.requirement("lifecycle.initialized-notification")
@pytest.mark.parametrize("revision", revisions_holding("lifecycle.initialize-by-client"))
def test_a_handshake_begins_with_initialize_and_is_confirmed(revision: str) -> None:
    client = Newcomer(REVISIONS.only(revision))
    (first,) = client.sent
    assert first["method"] == "initialize"
    assert first["params"] == {
        "protocolVersion": revision,
        "capabilities": {"roots": {}},
        "clientInfo": {"name": "client", "version": "1"},
    }
    client.hear(result=initialize_result(revision))
    assert client.methods == ["initialize", "notifications/initialized"]
    assert "id" not in client.sent[1]
    assert client.agreed() == revision


@pytest.mark.requirement("lifecycle.initialized-notification", revisions=EVERY_REVISION)
@pytest.mark.requirement("versioning.identifier", revisions=EVERY_REVISION)
@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"error": error(-32603)}, RemoteError),
        ({"result": initialize_result(NEWEST, protocolVersion=...)}, RemoteProtocolError),
        ({"result": initialize_result(NEWEST, serverInfo={"name": "x"})}, RemoteProtocolError),
        ({"result": initialize_result(NEWEST, protocolVersion=20251125)}, RemoteProtocolError),
        ({"result": initialize_result(NEWEST + " ")}, RevisionError),
        ({}, RemoteProtocolError),
    ],
)
def test_a_handshake_that_fails_is_not_confirmed(
    answer: Mapping[str, Any], kind: type[Exception]
) -> None:
    client = Newcomer(LEGACY)
    client.hear(**answer)
    assert isinstance(client.refused(), kind)
    assert client.methods == ["initialize"]


@pytest.mark.requirement("versioning.client-rejects-unknown")
@pytest.mark.parametrize("revision", revisions_holding("versioning.client-rejects-unknown"))
def test_a_revision_that_the_client_lacks_ends_the_opening(revision: str) -> None:
    for chosen in ("2099-01-01", *(name for name in ALL if name != revision)):
        client = Newcomer(REVISIONS.only(revision))
        client.hear(result=initialize_result(chosen))
        refusal = client.refused()
        assert isinstance(refusal, RevisionError)
        assert chosen in str(refusal)
        assert (refusal.supported, refusal.offered) == ((revision,), (chosen,))
        assert client.methods == ["initialize"]


@pytest.mark.requirement("versioning.client-rejects-unknown", "versioning.single-per-session")
@pytest.mark.requirement("seed-compat.fixed-server-version")
@pytest.mark.parametrize("chosen", revisions_holding("seed-compat.fixed-server-version"))
def test_the_client_goes_on_with_any_revision_it_speaks(chosen: str) -> None:
    client = Newcomer(LEGACY)
    client.hear(result=initialize_result(chosen))
    assert client.agreed() == client.connection.revision.name == chosen
    batched = client.connection.receive(
        encode_message([{"jsonrpc": "2.0", "id": 1, "method": "ping"}])
    )
    assert bool(sent_messages(batched)) is REVISIONS[chosen].batching


@pytest.mark.requirement("seed-compat.version-refused-by-error", revisions=EVERY_REVISION)
@pytest.mark.parametrize("code", [-32602, -32600])
def test_a_client_retries_with_a_revision_that_a_refusal_names(code: int) -> None:
    client = Newcomer(LEGACY)
    client.hear(error=error(code, {"supported": ["1999-01-01", OLDEST], "requested": NEWEST}))
    assert [m["params"]["protocolVersion"] for m in client.sent] == [NEWEST, OLDEST]
    client.hear(result=initialize_result(OLDEST))
    assert client.agreed() == OLDEST


@pytest.mark.requirement("seed-compat.version-refused-by-error")
@pytest.mark.parametrize("supported", [[NEWEST], [], ["1999-01-01"], [5], "2024-11-05"])
def test_a_refusal_without_a_new_revision_in_common_is_the_end(supported: Any) -> None:
    client = Newcomer(LEGACY)
    client.hear(error=error(-32602, {"supported": supported}))
    assert isinstance(client.refused(), (RevisionError, RemoteError))
    assert client.methods == ["initialize"]


@pytest.mark.requirement("discover.request-shape", "meta.request-protocol-version")
@pytest.mark.requirement("meta.request-client-capabilities")
@pytest.mark.parametrize("revision", revisions_holding("discover.request-shape"))
def test_a_client_of_both_kinds_probes_with_nothing_but_meta(revision: str) -> None:
    (probe,) = Newcomer().sent
    assert probe["method"] == "server/discover"
    info = {"name": "client", "version": "1"}
    key = "io.modelcontextprotocol/clientInfo"
    assert probe["params"] == {"_meta": {**meta_of(revision, {"roots": {}}), key: info}}


@pytest.mark.requirement("versioning.fallback-any-code", revisions=PER_REQUEST)
def test_silence_leads_to_initialize_despite_a_late_refusal() -> None:
    client = Newcomer()
    probing = [client.is_probing()]
    client.wait_in_vain()
    probing.append(client.is_probing())
    assert probing == [True, False]
    assert client.methods == ["server/discover", "initialize"]
    late = {"jsonrpc": "2.0", "id": client.sent[0]["id"], "error": error(-32601)}
    (ignored,) = client.connection.receive(encode_message(late))
    assert isinstance(ignored, Ignored)
    client.hear(result=initialize_result(NEWEST))
    assert client.agreed() == NEWEST
    client.wait_in_vain()
    assert client.methods[2:] == ["notifications/initialized"]


@pytest.mark.requirement("versioning.modern-error-no-fallback")
@pytest.mark.parametrize("code", [-32020, -32021, -32022])
@pytest.mark.parametrize("supported", [None, ["2099-01-01"], list(PER_REQUEST), "x"], ids=str)
def test_an_error_of_newer_servers_never_leads_to_initialize(code: int, supported: Any) -> None:
    client = Newcomer()
    refusal = error(code, None if supported is None else {"supported": supported})
    contradicts_itself = code == -32022 and supported == list(PER_REQUEST)
    for _ in range(2 if contradicts_itself else 1):
        client.hear(error=refusal)
    assert isinstance(client.refused(), (RevisionError, RemoteError))
    assert set(client.methods) == {"server/discover"}


def test_a_newer_server_is_asked_in_the_revision_that_it_names() -> None:
    client = Newcomer(with_another("2999-01-01"))
    client.hear(error=error(-32022, {"supported": list(PER_REQUEST)}))
    key = "io.modelcontextprotocol/protocolVersion"
    named = [message["params"]["_meta"][key] for message in client.sent]
    assert named == ["2999-01-01", PER_REQUEST[-1]]
    client.hear(result=discover_result(*PER_REQUEST))
    assert client.agreed() == PER_REQUEST[-1]


def test_a_newer_server_may_name_an_older_revision() -> None:
    client = Newcomer()
    client.hear(result=discover_result(OLDEST, NEWEST, "2099-01-01"))
    assert client.methods == ["server/discover", "initialize"]
    assert client.sent[1]["params"]["protocolVersion"] == NEWEST


def test_a_client_without_handshake_gives_up_on_an_older_server() -> None:
    answers: list[dict[str, Any]] = [{"error": error(-32601)}, {"result": {}}]
    for answer in answers:
        client = Newcomer(MODERN)
        assert not client.is_probing()
        client.hear(**answer)
        refusal = client.refused()
        assert isinstance(refusal, RevisionError)
        assert "speaks no per-request revision" in str(refusal)
        assert client.methods == ["server/discover"]
    lost = ResponseLostError("lost")
    client = Newcomer(MODERN)
    client.lose(lost)
    assert client.refused() is lost


@pytest.mark.requirement("lifecycle.implementation-title", "lifecycle.implementation-full")
@pytest.mark.requirement("lifecycle.implementation-basic")
@every
def test_the_client_introduces_itself_as_the_revision_has_it(revision: str) -> None:
    full = {"name": "c", "version": "1", "title": "C", "description": "d", "websiteUrl": "a://b"}
    full_info: dict[str, Any] = {**full, "icons": [{"src": "a://b.png"}]}

    def describe(_: Any) -> Description:
        return Description(full_info, {})

    known = {
        "lifecycle.implementation-basic": {"name", "version"},
        "lifecycle.implementation-title": {"name", "version", "title"},
        "lifecycle.implementation-full": set(full_info),
    }
    (members,) = (members for id, members in known.items() if revision in revisions_holding(id))
    connection = ClientConnection(REVISIONS.only(revision), describe)
    params = json.loads(sole(connection.send(OpenSession())).data)["params"]
    shown = params.get("clientInfo") or params["_meta"]["io.modelcontextprotocol/clientInfo"]
    assert shown == {name: full_info[name] for name in members}


UNSUPPORTED = facts(PER_REQUEST[-1]).errors.unsupported_revision or 0


def unsupported(supported: Any) -> RemoteError:
    """An error that lists revisions."""
    return RemoteError(UNSUPPORTED, "unsupported", {"supported": supported})


@pytest.mark.parametrize(
    ("failure", "method", "revision"),
    [
        (ResponseLostError("lost"), "initialize", NEWEST),
        (RemoteError(-32601, "unknown"), "initialize", NEWEST),
        (HttpStatusError("http://x", 404, "Not Found"), "initialize", NEWEST),
        (unsupported([OLDEST]), "initialize", OLDEST),
        (unsupported([OLDEST, NEWEST, PER_REQUEST[-1]]), "initialize", NEWEST),
        (unsupported([PER_REQUEST[-1], "2099-01-01"]), "server/discover", PER_REQUEST[-1]),
    ],
    ids=repr,
)
def test_a_failed_probe_is_followed_by_another_request(
    failure: McpError, method: str, revision: str
) -> None:
    client = Newcomer()
    client.lose(failure)
    following = client.sent[-1]
    key = "io.modelcontextprotocol/protocolVersion"
    named = {**following["params"], **following["params"].get("_meta", {})}
    assert (len(client.sent), following["method"]) == (2, method)
    assert revision in (named.get("protocolVersion"), named.get(key))


@pytest.mark.parametrize(
    "failure",
    [
        HttpStatusError("http://x", 401, "Unauthorized"),
        HttpStatusError("http://x", 407, "Proxy"),
        ConnectFailedError("http://x", "refused"),
        LocalProtocolError("wrong"),
        RemoteError(UNSUPPORTED, "unsupported"),
        unsupported([]),
        unsupported("all"),
        unsupported([PER_REQUEST[-1], 5]),
    ],
    ids=repr,
)
def test_some_failures_of_an_opening_are_final(failure: McpError) -> None:
    for client in (Newcomer(), Newcomer(REVISIONS.only(NEWEST))):
        client.lose(failure)
        assert client.refused() is failure
        assert client.connection.state.outbound.ids() == ()
