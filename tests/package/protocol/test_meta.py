"""`_meta`: which keys may be in it, and what the reserved ones do."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest

from kit.ends import ASKED, answering_ends, ask, asking_ends, begin_request, end_of
from kit.rules import revisions_holding
from kit.samples import RESULTS
from kit.wire import ClientEnd, ServerEnd, every, facts
from mcpgen_runtime import REVISIONS, LocalProtocolError
from mcpgen_runtime.facts import Role
from mcpgen_runtime.protocol.events import ReportProgress, RequestReceived, ResponseReceived
from mcpgen_runtime.protocol.request_meta import check_user_meta, is_valid_key
from requirements import EVERY_REVISION

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


VALID_KEYS = [
    *("a", "9", "a.b_c-d9", "com.example/a", "localhost/x", "com.example/", "a1-b/x", "A/B"),
]
INVALID_KEYS = [
    *("", "/a", "/", "a/b/c", "com..example/x", ".com/x", "com./x", "1a/x", "-a/x", "a-/x"),
    *("a_b/x", "a b/x", "_a", "a-", ".a", "a b", "a\n", "com.example/_x", "\u00e9", "com.\u00e9/x"),
]


@pytest.mark.requirement("meta.key-format", "meta.prefix-format", revisions=EVERY_REVISION)
@pytest.mark.requirement("meta.label-format", "meta.name-format", revisions=EVERY_REVISION)
@pytest.mark.parametrize("key", VALID_KEYS)
def test_a_key_is_an_optional_dotted_prefix_and_a_name(key: str) -> None:
    assert is_valid_key(key)


@pytest.mark.requirement("meta.key-format", "meta.prefix-format")
@pytest.mark.requirement("meta.label-format", "meta.name-format")
@pytest.mark.parametrize("key", INVALID_KEYS)
@pytest.mark.parametrize(("revision", "role"), asking_ends("meta.key-format"))
def test_a_key_of_no_valid_form_is_never_sent(revision: str, role: Role, key: str) -> None:
    end = end_of(revision, role)
    with pytest.raises(LocalProtocolError, match="_meta key"):
        begin_request(end, meta={key: 1})
    assert len(end.connection.state.outbound) == 0


FIRST_OR_LATER = revisions_holding("meta.reserved-prefix-2025-06-18")
SECOND_LABEL = revisions_holding("meta.reserved-prefix-second-label")
KEYS_RESERVED_BY_A_LABEL_BEFORE_ANOTHER = (
    *("modelcontextprotocol.io/x", "mcp.dev/x", "api.modelcontextprotocol.org/x"),
    "tools.mcp.com/x",
)
KEYS_RESERVED_BY_A_SECOND_LABEL = (
    *("io.modelcontextprotocol/x", "dev.mcp/x", "org.modelcontextprotocol.api/x"),
    "com.mcp.tools/x",
)
RESERVED = [
    *product(FIRST_OR_LATER, KEYS_RESERVED_BY_A_LABEL_BEFORE_ANOTHER),
    *product(SECOND_LABEL, KEYS_RESERVED_BY_A_SECOND_LABEL),
]
OTHERS = ("com.example/x", "com.example.mcp/x", "mcp/x", "y")
FREE = [
    *product(FIRST_OR_LATER, ("dev.mcp/x", "mcp.dev", *OTHERS)),
    *product(SECOND_LABEL, ("mcp.dev/x", "dev.mcp", *OTHERS)),
]


@pytest.mark.requirement("meta.reserved-prefix-2025-06-18", "meta.reserved-prefix-second-label")
@pytest.mark.parametrize(("revision", "key"), [*RESERVED, *FREE])
def test_a_user_may_put_a_key_under_any_prefix_but_a_reserved_one(revision: str, key: str) -> None:
    client = ClientEnd(revision)
    if (revision, key) in FREE:
        assert client.ask("tools/list", meta={key: [1]})["params"]["_meta"][key] == [1]
    else:
        with pytest.raises(LocalProtocolError, match="reserved"):
            client.ask("tools/list", meta={key: 1})


@pytest.mark.requirement("meta.member-reserved")
@pytest.mark.parametrize("revision", revisions_holding("meta.member-reserved"))
def test_older_revisions_have_no_rules_for_other_keys(revision: str) -> None:
    odd = {"/a": 1, "mcp.dev/x": 2, "_": None}
    assert ClientEnd(revision).ask("tools/list", meta=odd)["params"]["_meta"] == odd


@pytest.mark.requirement("meta.member-reserved", "meta.no-assumptions")
@pytest.mark.parametrize(
    "meta", [{"x": 1}, {"io.modelcontextprotocol/unknown": 5, "dev.mcp/x": None}, {}], ids=str
)
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.version-member"))
def test_meta_of_a_result_reaches_the_caller_as_it_is(revision: str, meta: dict[str, Any]) -> None:
    client = ClientEnd(revision)
    result = {**(RESULTS["tools/list"] or {}), "_meta": meta}
    answer = client.respond(client.ask("tools/list"), result=result)
    assert isinstance(answer, ResponseReceived)
    assert answer.result.meta == meta
    assert json.loads(bytes(answer.raw))["_meta"] == meta


@pytest.mark.requirement("meta.no-assumptions")
@pytest.mark.parametrize(("revision", "role"), answering_ends("meta.no-assumptions"))
def test_meta_of_a_request_reaches_the_handler_as_it_is(revision: str, role: Role) -> None:
    meta: dict[str, Any] = {"traceparent": "none", "dev.mcp/x": None, "/odd": {"a": [1]}}
    end = end_of(revision, role)
    assert ask(end, ASKED[role], meta=meta) == []
    (event,) = (event for event in end.events if isinstance(event, RequestReceived))
    assert event.meta.items() >= meta.items()


@pytest.mark.requirement("meta.member-reserved")
@every
def test_tool_arguments_are_not_searched_for_meta(revision: str) -> None:
    server = ServerEnd(revision)
    arguments = {"_meta": {"progressToken": "p"}, "progressToken": "q"}
    server.ask("tools/call", {"name": "echo", "arguments": arguments}, id=1)
    (event,) = server.requests()
    assert "progressToken" not in event.meta
    assert event.params.arguments == arguments
    assert server.send(ReportProgress(1, 1)) == []


@pytest.mark.requirement("meta.schema-reserved-names")
@pytest.mark.parametrize(("revision", "role"), asking_ends("meta.schema-reserved-names"))
def test_a_user_cannot_choose_the_progress_token(revision: str, role: Role) -> None:
    end = end_of(revision, role)
    for progress in (True, False):
        with pytest.raises(LocalProtocolError, match="progressToken"):
            begin_request(end, meta={"progressToken": 1}, progress=progress)


@pytest.mark.requirement("meta.trace-keys-reserved", "meta.trace-value-format")
@pytest.mark.parametrize(
    ("key", "value", "valid"),
    [
        ("traceparent", PARENT, True),
        ("traceparent", PARENT.upper(), False),
        ("traceparent", "ff" + PARENT[2:], False),
        ("traceparent", f"00-{'0' * 32}-00f067aa0ba902b7-01", False),
        ("traceparent", f"00-4bf92f3577b34da6a3ce929d0e0e4736-{'0' * 16}-01", False),
        ("traceparent", 5, False),
        ("tracestate", "rojo=00f067aa0ba902b7, congo@v=t 1", True),
        ("tracestate", "Congo=1", False),
        ("tracestate", "a=b=c", False),
        ("baggage", "userId = alice , serverNode=DF%2028;prop;p2 = v,isProd=", True),
        ("baggage", "userId", False),
        ("baggage", 'userId="alice"', False),
        ("baggage", "a=b;", False),
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
