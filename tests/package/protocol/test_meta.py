"""`_meta`: which keys may be in it, and what the reserved ones do."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import product
from types import FrameType
from typing import Any

import pytest
from msgspec import Raw

from kit.ends import answering_ends, ask, asking_ends, both, end_of
from kit.pair import Pair
from kit.rules import revisions_holding
from kit.samples import PARAMS, RESULTS
from kit.wire import (
    ALL,
    EVERY_SERVER_CAPABILITY,
    PER_REQUEST,
    ClientEnd,
    ServerEnd,
    describe_as,
    encode_message,
    facts,
    meta_of,
    request,
    sole,
)
from mcpgen_runtime.errors import LocalProtocolError
from mcpgen_runtime.facts import Role, other
from mcpgen_runtime.protocol.events import (
    ReportProgress,
    RequestReceived,
    ResponseReceived,
    SendRequest,
)
from mcpgen_runtime.protocol.request_meta import (
    check_user_meta,
    is_reserved_key,
    is_valid_key,
)
from mcpgen_runtime.protocol.server_connection import RequestMetaReader, ServerMeta, lacks_meta
from mcpgen_runtime.revisions import REVISIONS
from requirements import EVERY_REVISION

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.mark.requirement("meta.key-format", "meta.prefix-format", revisions=EVERY_REVISION)
@pytest.mark.requirement("meta.label-format", "meta.name-format", revisions=EVERY_REVISION)
@pytest.mark.parametrize(
    ("key", "valid"),
    [
        ("a", True),
        ("9", True),
        ("a.b_c-d9", True),
        ("com.example/a", True),
        ("localhost/x", True),
        ("com.example/", True),
        ("a1-b/x", True),
        ("A/B", True),
        ("", False),
        ("/a", False),
        ("/", False),
        ("a/b/c", False),
        ("com..example/x", False),
        (".com/x", False),
        ("com./x", False),
        ("1a/x", False),
        ("-a/x", False),
        ("a-/x", False),
        ("a_b/x", False),
        ("a b/x", False),
        ("_a", False),
        ("a-", False),
        (".a", False),
        ("a b", False),
        ("a\n", False),
        ("com.example/_x", False),
        ("\u00e9", False),
        ("com.\u00e9/x", False),
    ],
)
def test_a_key_is_an_optional_dotted_prefix_and_a_name(key: str, valid: bool) -> None:
    assert is_valid_key(key) is valid


@pytest.mark.requirement("meta.key-format", "meta.prefix-format")
@pytest.mark.requirement("meta.label-format", "meta.name-format")
@pytest.mark.parametrize("key", ["/a", "com..example/x", "1a/x", "_a", ""])
@pytest.mark.parametrize(("revision", "role"), asking_ends("meta.key-format"))
def test_a_key_of_no_valid_form_is_never_sent(revision: str, role: Role, key: str) -> None:
    connection = end_of(revision, role).connection
    with pytest.raises(LocalProtocolError, match="_meta key"):
        connection.send(SendRequest("ping" if role == "server" else "tools/list", meta={key: 1}))
    assert len(connection.state.outbound) == 0


@pytest.mark.requirement("meta.reserved-prefix-2025-06-18")
@pytest.mark.parametrize(
    ("key", "reserved"),
    [
        ("modelcontextprotocol.io/x", True),
        ("mcp.dev/x", True),
        ("api.modelcontextprotocol.org/x", True),
        ("tools.mcp.com/x", True),
        ("io.modelcontextprotocol/x", False),
        ("com.example/x", False),
        ("com.example.mcp/x", False),
        ("mcp/x", False),
        ("mcp.dev", False),
    ],
)
@pytest.mark.parametrize("revision", revisions_holding("meta.reserved-prefix-2025-06-18"))
def test_a_reserved_prefix_has_a_protocol_label_before_another(
    revision: str, key: str, reserved: bool
) -> None:
    assert is_reserved_key(key, facts(revision)) is reserved


@pytest.mark.requirement("meta.reserved-prefix-second-label")
@pytest.mark.parametrize(
    ("key", "reserved"),
    [
        ("io.modelcontextprotocol/x", True),
        ("dev.mcp/x", True),
        ("org.modelcontextprotocol.api/x", True),
        ("com.mcp.tools/x", True),
        ("com.example.mcp/x", False),
        ("mcp.dev/x", False),
        ("mcp/x", False),
        ("dev.mcp", False),
    ],
)
@pytest.mark.parametrize("revision", revisions_holding("meta.reserved-prefix-second-label"))
def test_a_second_label_of_the_protocol_reserves_a_prefix(
    revision: str, key: str, reserved: bool
) -> None:
    assert is_reserved_key(key, facts(revision)) is reserved


FIRST_OR_LATER = revisions_holding("meta.reserved-prefix-2025-06-18")
SECOND_LABEL = revisions_holding("meta.reserved-prefix-second-label")
RESERVED = [
    *product(FIRST_OR_LATER, ("mcp.dev/x", "tools.mcp.com/x", "modelcontextprotocol.io/x")),
    *product(SECOND_LABEL, ("dev.mcp/x", "com.mcp.tools/x", "io.modelcontextprotocol/x")),
]
FREE = [
    *product(FIRST_OR_LATER, ("dev.mcp/x", "com.example/x", "y")),
    *product(SECOND_LABEL, ("mcp.dev/x", "com.example.mcp/x", "com.example/x", "y")),
]


@pytest.mark.requirement("meta.reserved-prefix-2025-06-18", "meta.reserved-prefix-second-label")
@pytest.mark.parametrize(("revision", "key"), RESERVED)
def test_a_user_cannot_put_a_key_under_a_reserved_prefix(revision: str, key: str) -> None:
    with pytest.raises(LocalProtocolError, match="reserved"):
        ClientEnd(revision).ask("tools/list", meta={key: 1})


@pytest.mark.requirement("meta.reserved-prefix-2025-06-18", "meta.reserved-prefix-second-label")
@pytest.mark.parametrize(("revision", "key"), FREE)
def test_a_user_may_put_a_key_under_any_other_prefix(revision: str, key: str) -> None:
    sent = ClientEnd(revision).ask("tools/list", meta={key: [1]})
    assert sent["params"]["_meta"].items() >= {key: [1]}.items()


@pytest.mark.requirement("meta.member-reserved")
@pytest.mark.parametrize("revision", revisions_holding("meta.member-reserved"))
def test_older_revisions_have_no_rules_for_other_keys(revision: str) -> None:
    odd = {"/a": 1, "mcp.dev/x": 2, "_": None}
    assert not any(is_reserved_key(key, facts(revision)) for key in odd)
    assert ClientEnd(revision).ask("tools/list", meta=odd)["params"]["_meta"] == odd


@pytest.mark.requirement("meta.member-reserved", "meta.no-assumptions")
@pytest.mark.parametrize(
    "meta", [{"x": 1}, {"io.modelcontextprotocol/unknown": 5, "dev.mcp/x": None}, {}], ids=str
)
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.version-member"))
def test_meta_of_a_result_reaches_the_caller_as_it_is(revision: str, meta: dict[str, Any]) -> None:
    client = ClientEnd(revision)
    id = client.ask("tools/list")["id"]
    result = {**(RESULTS["tools/list"] or {}), "_meta": meta}
    client.say({"jsonrpc": "2.0", "id": id, "result": result})
    (answer,) = client.events
    assert isinstance(answer, ResponseReceived)
    assert answer.result.meta == meta
    assert json.loads(bytes(answer.raw))["_meta"] == meta


@pytest.mark.requirement("meta.no-assumptions")
@pytest.mark.parametrize(("revision", "role"), answering_ends("meta.no-assumptions"))
def test_meta_of_a_request_reaches_the_handler_as_it_is(revision: str, role: Role) -> None:
    meta = {"io.modelcontextprotocol/unknown": 5, "dev.mcp/x": None, "/odd": {"a": [1]}}
    end = end_of(revision, role)
    assert ask(end, "tools/list" if role == "server" else "roots/list", meta=meta) == []
    (event,) = (event for event in end.events if isinstance(event, RequestReceived))
    assert event.meta.items() >= meta.items()


@pytest.mark.requirement("meta.member-reserved")
@pytest.mark.parametrize("revision", REVISIONS)
def test_tool_arguments_are_not_searched_for_meta(revision: str) -> None:
    server = ServerEnd(revision)
    arguments = {"_meta": {"progressToken": "p"}, "progressToken": "q"}
    server.ask("tools/call", {"name": "echo", "arguments": arguments}, id=1)
    (event,) = server.requests()
    assert "progressToken" not in event.meta
    assert event.params.arguments == arguments
    assert sole(server.connection.send(ReportProgress(1, 1))) is None


@pytest.mark.requirement("meta.progress-token-key", "meta.schema-reserved-names")
@pytest.mark.parametrize(("revision", "role"), asking_ends("meta.progress-token-key"))
def test_a_request_has_a_progress_token_if_progress_is_wanted(revision: str, role: Role) -> None:
    pair = Pair(revision)
    method = "sampling/createMessage" if role == "server" else "tools/call"
    asker, server = pair.ends[role], pair.ends[other(role)]
    for progress in (True, False):
        id = pair.ask(role, method, PARAMS[method], progress=progress)
        meta = pair.sent(role)[-1]["params"].get("_meta", {})
        assert ("progressToken" in meta) is progress
        assert (sole(server.send(ReportProgress(id, 1))) is not None) is progress
    assert len(asker.state.outbound) == 2


@pytest.mark.requirement("meta.schema-reserved-names")
@pytest.mark.parametrize(("revision", "role"), asking_ends("meta.schema-reserved-names"))
def test_a_user_cannot_choose_the_progress_token(revision: str, role: Role) -> None:
    connection = end_of(revision, role).connection
    for progress in (True, False):
        with pytest.raises(LocalProtocolError, match="progressToken"):
            connection.send(
                SendRequest(
                    "ping" if role == "server" else "tools/list",
                    meta={"progressToken": 1},
                    progress=progress,
                )
            )


@pytest.mark.requirement("meta.trace-keys-reserved", "meta.trace-value-format")
@pytest.mark.parametrize(
    ("key", "value", "valid"),
    [
        ("traceparent", PARENT, True),
        ("traceparent", PARENT.upper(), False),
        ("traceparent", PARENT[:-1], False),
        ("traceparent", "ff" + PARENT[2:], False),
        ("traceparent", f"00-{'0' * 32}-00f067aa0ba902b7-01", False),
        ("traceparent", f"00-4bf92f3577b34da6a3ce929d0e0e4736-{'0' * 16}-01", False),
        ("traceparent", "", False),
        ("traceparent", 5, False),
        ("tracestate", "congo=t61rcWkgMzE", True),
        ("tracestate", "rojo=00f067aa0ba902b7, congo@v=t 1", True),
        ("tracestate", "congo", False),
        ("tracestate", "Congo=1", False),
        ("tracestate", "a=b=c", False),
        ("tracestate", None, False),
        ("baggage", "userId=alice", True),
        ("baggage", "userId = alice , serverNode=DF%2028;prop;p2 = v,isProd=", True),
        ("baggage", "userId", False),
        ("baggage", 'userId="alice"', False),
        ("baggage", "user id=alice", False),
        ("baggage", "a=b;", False),
        ("baggage", ["a=b"], False),
    ],
)
@pytest.mark.parametrize("revision", revisions_holding("meta.trace-keys-reserved"))
def test_the_trace_keys_carry_w3c_trace_context_and_nothing_else(
    revision: str, key: str, value: Any, valid: bool
) -> None:
    client = ClientEnd(revision)
    if valid:
        assert client.ask("tools/list", meta={key: value})["params"]["_meta"][key] == value
    else:
        with pytest.raises(LocalProtocolError, match=key):
            client.ask("tools/list", meta={key: value})


@pytest.mark.requirement("meta.trace-keys-reserved", "meta.trace-value-format")
@pytest.mark.parametrize("value", [PARENT, "no trace", 5, None], ids=repr)
@pytest.mark.parametrize("revision", revisions_holding("meta.trace-value-format"))
def test_any_trace_context_is_accepted_and_shown_to_the_handler(revision: str, value: Any) -> None:
    server = ServerEnd(revision)
    assert server.ask("tools/list", meta={"traceparent": value}) == []
    (event,) = server.requests()
    assert event.meta["traceparent"] == value


PASSED_ON = [
    (revision, key)
    for revision in REVISIONS
    for keys in [facts(revision).meta]
    for key in (keys.log_level, keys.related_task, keys.subscription_id)
    if key is not None
]


@pytest.mark.parametrize(("revision", "key"), PASSED_ON)
def test_a_gateway_may_pass_on_keys_defined_by_the_revision(revision: str, key: str) -> None:
    check_user_meta({key: "info"}, facts(revision))
    with pytest.raises(LocalProtocolError, match="reserved"):
        check_user_meta({f"{key}x": "info"}, facts(revision))


@pytest.mark.parametrize("meta", [5, "x", [], True], ids=repr)
@pytest.mark.parametrize(("revision", "role"), both("meta.progress-token-key"))
def test_meta_that_is_no_object_is_refused(revision: str, role: Role, meta: Any) -> None:
    end = end_of(revision, role)
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": meta}}
    answers = end.say(message)
    assert [answer["error"]["code"] for answer in answers] == (
        [-32602] if role == "server" or REVISIONS[revision].server_requests else []
    )


@pytest.mark.requirement("meta.progress-token-key")
@pytest.mark.parametrize("token", [1.5, {}, None, True], ids=repr)
@pytest.mark.parametrize("revision", [r for r in REVISIONS if not facts(r).meta.protocol_version])
def test_a_progress_token_of_another_type_counts_as_none(revision: str, token: Any) -> None:
    server = ServerEnd(revision)
    server.say(request(revision, "tools/list", id=1, meta={"progressToken": token}))
    assert sole(server.connection.send(ReportProgress(1, 1))) is None


def decodings(receive: Callable[[], object]) -> int:
    """How often JSON is decoded while a message is received."""
    count = 0

    def watch(_frame: FrameType, event: str, function: object) -> None:
        nonlocal count
        count += event == "c_call" and getattr(function, "__name__", "") == "decode"

    sys.setprofile(watch)
    try:
        receive()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("revision", ALL)
@pytest.mark.structs("counts what msgspec decodes, and params are read by pydantic")
def test_equal_params_of_consecutive_requests_decode_once(revision: str) -> None:
    server = ServerEnd(revision, EVERY_SERVER_CAPABILITY)
    params = {"name": "x", "arguments": {"text": "y"}}
    first, second = (
        encode_message(request(revision, "tools/call", params, id=f"{number}")) for number in (1, 2)
    )
    server.connection.receive(first)
    assert decodings(lambda: server.connection.receive(second)) == 2  # the message, its params


@pytest.mark.parametrize("revision", PER_REQUEST)
def test_other_metadata_than_that_of_the_last_request_counts(revision: str) -> None:
    server = ServerEnd(revision, EVERY_SERVER_CAPABILITY)
    declared: list[dict[str, Any]] = [{"sampling": {}}, {"roots": {}}, {"roots": {}}]
    for number, capabilities in enumerate(declared):
        message = request(
            revision, "tools/call", {"name": "x"}, id=f"{number}", capabilities=capabilities
        )
        (event,) = server.connection.receive(encode_message(message))
        assert isinstance(event, RequestReceived)
        assert event.peer_capabilities == capabilities


@pytest.mark.parametrize("revision", PER_REQUEST)
def test_metadata_of_at_most_64_kib_is_recognized_again(revision: str) -> None:
    reader = RequestMetaReader(REVISIONS)
    for size, known in ((64 * 1024, True), (64 * 1024 + 1, False)):
        meta = meta_of(revision) | {"x": ""}
        meta["x"] = "y" * (size - len(encode_message(meta)))
        reader.read(Raw(encode_message({"_meta": meta})))
        assert reader.is_like_last(meta) == known
        assert reader.is_like_last({**meta, "progressToken": size}) == known
        assert not reader.is_like_last({**meta, "progressToken": 1.5})


@pytest.mark.parametrize("revision", PER_REQUEST)
def test_the_metadata_of_results_is_made_and_encoded_once(revision: str) -> None:
    row, cache = REVISIONS[revision], ServerMeta(REVISIONS)
    own, encoded = cache.of_results(row, describe_as({}, "server"))
    assert encoded is not None
    assert json.loads(bytes(encoded)) == own
    again, same = cache.of_results(row, describe_as({"later": {}}, "server"))
    assert (again is own, same is encoded) == (True, True)


@pytest.mark.parametrize(
    ("params", "lacks"), [(b"{}", True), (b'{"_meta":1}', False), (b"[]", False), (b" {}", False)]
)
def test_params_without_the_word_have_no_metadata(params: bytes, lacks: bool) -> None:
    assert lacks_meta(params) is lacks
