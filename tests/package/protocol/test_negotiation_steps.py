"""The steps of version negotiation after each kind of failure, and lenient results, by tables."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kit.wire import HANDSHAKE, PER_REQUEST, describe_as, facts
from mcpgen_runtime._wire import ValidationError
from mcpgen_runtime.errors import (
    ConnectFailedError,
    HttpStatusError,
    LocalProtocolError,
    McpError,
    RemoteError,
    RemoteProtocolError,
    ResponseLostError,
    RevisionError,
)
from mcpgen_runtime.facts import Lifecycle
from mcpgen_runtime.protocol.initialization import Step
from mcpgen_runtime.protocol.negotiation import first_step
from mcpgen_runtime.protocol.results import drop_malformed_members, result_decoder
from mcpgen_runtime.revisions import REVISIONS

NEWEST = PER_REQUEST[-1]
SESSIONS = REVISIONS.of(Lifecycle.HANDSHAKE)
MODERN = REVISIONS.of(Lifecycle.PER_REQUEST)
UNSUPPORTED = facts(NEWEST).errors.unsupported_revision
PROBE, HANDSHAKES = ("server/discover", NEWEST), ("initialize", HANDSHAKE[-1])


def step_of(revisions: Any) -> Step:
    """The first step of a negotiation."""
    return first_step(revisions, describe_as({}, "client"))


def request_of(step: Step) -> tuple[str, str]:
    """Method and revision of the request of a step."""
    return step.method, step.revision.name


def refusal(supported: Any, code: int = UNSUPPORTED or 0) -> RemoteError:
    """An error that lists revisions."""
    return RemoteError(code, "unsupported", {"supported": supported})


LOST = ResponseLostError("lost")
AFTER_A_PROBE: list[tuple[McpError | None, tuple[str, str]]] = [
    (None, HANDSHAKES),
    (LOST, HANDSHAKES),
    (RemoteError(-32601, "unknown"), HANDSHAKES),
    (HttpStatusError("http://x", 404, "Not Found"), HANDSHAKES),
    (refusal([HANDSHAKE[0]]), ("initialize", HANDSHAKE[0])),
    (refusal([HANDSHAKE[0], HANDSHAKE[-1], NEWEST]), HANDSHAKES),
    (refusal([NEWEST]), PROBE),
    (refusal([NEWEST, "2099-01-01"]), PROBE),
]


@pytest.mark.parametrize(("error", "following"), AFTER_A_PROBE)
def test_a_failed_probe_is_followed_by_another_request(
    error: McpError | None, following: tuple[str, str]
) -> None:
    assert request_of(step_of(REVISIONS).receive_error(error)) == following


FINAL = [
    HttpStatusError("http://x", 401, "Unauthorized"),
    HttpStatusError("http://x", 407, "Proxy"),
    ConnectFailedError("http://x", "refused"),
    LocalProtocolError("wrong"),
    RemoteError(UNSUPPORTED or 0, "unsupported"),
    refusal([]),
    refusal("all"),
    refusal([NEWEST, 5]),
]


@pytest.mark.parametrize("error", FINAL, ids=repr)
def test_some_failures_of_a_probe_are_final(error: McpError) -> None:
    with pytest.raises(type(error)) as raised:
        step_of(REVISIONS).receive_error(error)
    assert raised.value is error


def test_a_revision_that_is_refused_yet_listed_is_tried_again() -> None:
    again = step_of(REVISIONS).receive_error(refusal([NEWEST]))
    assert request_of(again) == PROBE
    with pytest.raises(RevisionError, match="no revision in common") as error:
        again.receive_error(refusal([NEWEST]))
    assert error.value.offered == (NEWEST,)


@pytest.mark.parametrize(
    "error", [refusal(["2099-01-01"]), *(refusal([NEWEST], code) for code in (-32021, -32020))]
)
def test_without_a_listed_revision_to_try_none_is_in_common(error: RemoteError) -> None:
    with pytest.raises(RevisionError, match="no revision in common"):
        step_of(REVISIONS).receive_error(error)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (None, "the server speaks no per-request revision"),
        (RemoteError(-32601, "unknown"), "speaks no per-request revision: .*unknown"),
    ],
)
def test_a_client_without_handshake_names_what_it_missed(error: McpError | None, text: str) -> None:
    with pytest.raises(RevisionError, match=text):
        step_of(MODERN).receive_error(error)
    with pytest.raises(ResponseLostError):
        step_of(MODERN).receive_error(LOST)


def test_a_refused_handshake_is_tried_with_a_listed_revision() -> None:
    named = refusal([HANDSHAKE[-1], HANDSHAKE[0], HANDSHAKE[1]], -32602)
    again = step_of(SESSIONS).receive_error(named)
    assert request_of(again) == ("initialize", HANDSHAKE[1])
    with pytest.raises(RevisionError, match="no revision in common"):
        again.receive_error(refusal([HANDSHAKE[-1], HANDSHAKE[1], NEWEST], -32602))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (None, RemoteProtocolError),
        (LOST, ResponseLostError),
        (RemoteError(-32602, "no"), RemoteError),
        (RemoteError(-32602, "no", [1]), RemoteError),
    ],
    ids=repr,
)
def test_other_failures_of_a_handshake_are_final(error: McpError | None, kind: type) -> None:
    with pytest.raises(kind) as raised:
        step_of(SESSIONS).receive_error(error)
    if error is None:
        assert str(raised.value) == "initialize: no answer"
    else:
        assert raised.value is error


HINTS = {"ttlMs": 0, "cacheScope": "public"}


@pytest.mark.parametrize(
    ("members", "kept", "changed"),
    [
        (HINTS, HINTS, False),
        ({"a": 1}, {"a": 1}, False),
        ({"ttlMs": 5, "cacheScope": "private"}, {"ttlMs": 5, "cacheScope": "private"}, False),
        *(
            ({**HINTS, "ttlMs": ttl}, {"cacheScope": "public"}, True)
            for ttl in (-1, True, "5", None)
        ),
        *(({**HINTS, "cacheScope": scope}, {"ttlMs": 0}, True) for scope in ("own", None, ["a"])),
        ({"capabilities": {"tools": {}}}, {"capabilities": {"tools": {}}}, False),
        (
            {"capabilities": {"extensions": {"a.b/c": 5, "a.b/d": {}}}},
            {"capabilities": {"extensions": {"a.b/d": {}}}},
            True,
        ),
        ({"capabilities": 5}, {"capabilities": 5}, False),
    ],
    ids=str,
)
def test_malformed_hints_of_a_result_count_as_absent(
    members: dict[str, Any], kept: dict[str, Any], changed: bool
) -> None:
    result = dict(members)
    assert drop_malformed_members(result) is changed
    assert result == kept


@pytest.mark.parametrize("revision", PER_REQUEST)
def test_a_result_that_is_malformed_elsewhere_is_refused(revision: str) -> None:
    decode = result_decoder(REVISIONS[revision].client_requests["resources/read"])
    result = {"contents": [{"uri": "memo://a", "text": "a"}], "resultType": "complete", **HINTS}
    assert decode(json.dumps({**result, "ttlMs": -1}).encode()).contents[0].text == "a"
    for wrong in ({**result, "contents": 5}, {**result, "ttlMs": -1, "contents": 5}):
        with pytest.raises(ValidationError):
            decode(json.dumps(wrong).encode())
