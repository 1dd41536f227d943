"""Begin and end of sessions: version negotiation, initialization, discovery, standard streams."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

from mcpgen.check_server.connections import Received, encode
from mcpgen.check_server.feature_checks import NO_CACHE
from mcpgen.check_server.jsonrpc_checks import INVALID_PARAMS, LISTS, METHOD_NOT_FOUND
from mcpgen.check_server.outcomes import applies, require, require_error, require_valid, result_of
from mcpgen.check_server.session import Session
from mcpgen.check_server.table import HTTP, STDIO, Table
from mcpgen.errors import format_value
from mcpgen.json_types import Json, is_array, is_object

TABLE = Table()

ANCIENT = "1900-01-01"
"""A version older than all that exist."""

FUTURE = "9999-12-31"
"""A version later than all that exist."""

_IMPLEMENTATION = {"name": "server", "version": "1"}
EXIT_SECONDS = 5.0
"""Seconds after the end of its input in which a server has to end."""


@TABLE.add("lifecycle.initialize-result")
async def initialize_has_its_result(session: Session) -> None:
    shape = {"capabilities": {}, "serverInfo": _IMPLEMENTATION}
    result: Json = session.opening.result
    present = {name: value for name, value in shape.items() if name in result}
    wrong = session.revision.violation("InitializeResult", {**result, **present})
    require_valid(wrong, "result")


@TABLE.add(
    "lifecycle.implementation-basic",
    "lifecycle.implementation-title",
    "lifecycle.implementation-full",
)
async def the_server_names_itself(session: Session) -> None:
    key = session.revision.protocol.facts.meta.server_info
    result: Json = session.opening.result
    if session.has_handshake:
        info: Json = result.get("serverInfo")
    else:
        meta: Json = result.get("_meta")
        info = meta.get(str(key)) if is_object(meta) else None
    applies(info is not None, "the server does not name itself")
    require_valid(session.revision.violation("Implementation", info), "serverInfo")


@TABLE.add("lifecycle.initialize-first")
async def nothing_is_sent_before_initialize(session: Session) -> None:
    # The pages require the client to wait. Of the server they require only that it sends nothing
    # else first: it need not refuse a request that comes too early.
    async with session.open_another(is_open=False) as other:
        result_of(await other.initialize(session.version), "initialize")
        early = next(
            (each for each in _messages_before_response(other) if not _may_come_early(each)), None
        )
        expected = "nothing but ping and log messages before the result of initialize"
        require(early is None, expected, early.text if early else "")


def _messages_before_response(session: Session) -> Iterator[Received]:
    """The messages of the server before its first response."""
    sent = (each for each in session.connection.received if is_object(each.message))
    return itertools.takewhile(lambda each: not each.is_response, sent)


def _may_come_early(sent: Received) -> bool:
    message: Json = sent.message
    return message.get("method") in ("ping", "notifications/message")


@TABLE.add("versioning.server-echo", compares=True)
async def a_supported_version_is_answered_as_it_is(session: Session) -> None:
    answers = session.server.initialized
    supported = {version for version in answers.values() if isinstance(version, str)}
    for requested, answered in answers.items():
        expected = f"protocolVersion {requested}, which the server offers by itself elsewhere"
        require(
            requested not in supported or answered == requested, expected, format_value(answered)
        )


async def _offered_version(session: Session, version: str) -> Json:
    async with session.open_another(is_open=False) as other:
        result: Json = result_of(await other.initialize(version), f"initialize for {version}")
        return result.get("protocolVersion")


def _versions(session: Session, *, handshake: bool) -> list[str]:
    """The revisions that the server speaks, with or without a handshake."""
    return [
        each.version
        for each in session.server.spoken
        if bool(each.methods("initialize", "client")) == handshake
    ]


@TABLE.add("versioning.server-counter-offer", compares=True)
async def an_unknown_version_gets_another_one(session: Session) -> None:
    offered = await _offered_version(session, ANCIENT)
    known = _versions(session, handshake=True)
    require(
        offered in known,
        f"a version that the server speaks ({', '.join(known)})",
        format_value(offered),
    )


@TABLE.add("versioning.server-latest", compares=True)
async def the_other_version_is_the_latest(session: Session) -> None:
    offered = await _offered_version(session, FUTURE)
    known = _versions(session, handshake=True)
    applies(offered in known, "the server offers a version that it does not speak")
    require(offered == max(known), f"the latest version, {max(known)}", format_value(offered))


@TABLE.add("versioning.no-modern-in-initialize", compares=True)
async def initialize_settles_on_a_version_that_has_it(session: Session) -> None:
    modern = _versions(session, handshake=False)
    applies(bool(modern), "the server speaks no revision without initialize")
    offered = await _offered_version(session, modern[-1])
    require(offered not in modern, f"a version other than {modern[-1]}", format_value(offered))


@TABLE.add("ping.answered")
async def ping_has_an_empty_result(session: Session) -> None:
    result = result_of(await session.ask("ping"), "ping")
    require(
        not result.keys() - {"_meta"}, "an empty result of ping", f"result {format_value(result)}"
    )


@TABLE.add("lifecycle.shutdown-by-transport", "stdio.shutdown-server-on-eof", on=STDIO)
async def the_server_ends_with_its_input(session: Session) -> None:
    seconds = min(EXIT_SECONDS, session.server.timeout)
    async with session.open_another() as other:
        ended = await other.stdio.end_input(seconds)
    require(ended, f"the process to end within {seconds:g} s of its input", "one that runs on")


@TABLE.add("stdio.newline-delimited", on=STDIO)
async def a_line_is_a_message(session: Session) -> None:
    requests = [session.request(session.liveness) for _ in range(2)]
    both = b"\n".join(map(encode, requests))
    reply = await session.connection.send(both, [each["id"] for each in requests])
    actual = [each.message.get("id") for each in reply.received if each.is_response]
    ids = [each["id"] for each in requests]
    expected = f"responses with the ids {format_value(ids)} to two requests in one write"
    require(
        set(map(str, ids)) <= set(map(str, actual)), expected, f"the ids {format_value(actual)}"
    )


@TABLE.add("stdio.utf8", on=STDIO)
@TABLE.add("http.utf8", on=HTTP)
async def messages_are_utf8(session: Session) -> None:
    id = "mcpgen \u00e9\u4e16\U0001f600"
    reply = await session.ask(session.liveness, id=id)
    actual: Json = reply.answer.get("id") if reply.answer is not None else reply.text
    require(actual == id, f"a response with the id {format_value(id)}", format_value(actual))
    bad = next((each for each in _records(session) if each.error.startswith("not UTF-8")), None)
    require(bad is None, "UTF-8", bad.text if bad else "")


def _records(session: Session) -> list[Received]:
    return [each for part in session.records for each in part]


@TABLE.add("stdio.server-message-kinds", on=STDIO)
async def nothing_is_written_unasked(session: Session) -> None:
    async with session.open_another() as other:
        first = next((each for each in other.connection.received if not each.error), None)
        kept = first is None or first.is_response
        require(kept, "nothing before the first response", first.text if first else "")


# ---- without a handshake
@TABLE.add("lifecycle.no-handshake")
async def the_first_request_is_served(session: Session) -> None:
    method = next((row[0] for name, row in LISTS.items() if session.declares(name)), None)
    async with session.open_another(is_open=False) as other:
        first = method or session.liveness
        result_of(await other.ask(first), f"{first} as the first request of a connection")


@TABLE.add("discover.implemented")
async def every_server_can_be_discovered(session: Session) -> None:
    result_of(await session.ask("server/discover"), "server/discover")


@TABLE.add("discover.result-shape")
async def discovery_has_its_result(session: Session) -> None:
    result: Json = session.opening.result
    present: dict[str, Any] = {"capabilities": {}} if "capabilities" in result else {}
    shape = {**result, **NO_CACHE, **present}
    shape.pop("_meta", None)  # judged by lifecycle.implementation-full
    wrong = session.revision.violation("DiscoverResult", shape)
    require_valid(wrong, "result")


@TABLE.add("discover.server-info")
async def discovery_names_the_server(session: Session) -> None:
    key = session.revision.protocol.facts.meta.server_info
    result: Json = session.opening.result
    meta: Json = result.get("_meta")
    named = is_object(meta) and is_object(meta.get(str(key)))
    require(named, f"{key} in _meta of the result", format_value(meta))
    require("serverInfo" not in result, "no serverInfo beside _meta", "serverInfo")


@TABLE.add("meta.client-info-optional-for-server")
async def a_client_need_not_name_itself(session: Session) -> None:
    key = session.revision.protocol.facts.meta.client_info
    reply = await session.ask(session.liveness, meta={str(key): None})
    result_of(reply, "a request without clientInfo")


@TABLE.add("meta.missing-required-rejected")
async def a_request_without_its_metadata_is_refused(session: Session) -> None:
    facts = session.revision.protocol.facts
    header = facts.errors.header_mismatch
    over_http = (header,) if session.transport == "http" and header is not None else ()
    for key, codes in (
        (facts.meta.client_capabilities, ()),
        (facts.meta.protocol_version, over_http),
    ):
        reply = await session.ask(session.liveness, meta={str(key): None})
        require_error(reply, INVALID_PARAMS, *codes, what=f"without {key} in _meta")


@TABLE.add("versioning.unsupported-error", on=STDIO)
async def an_unknown_version_is_refused(session: Session) -> None:
    facts = session.revision.protocol.facts
    reply = await session.ask(session.liveness, meta={str(facts.meta.protocol_version): ANCIENT})
    require_error(reply, facts.errors.unsupported_revision, what=f"for the version {ANCIENT}")
    data: Json = reply.error.get("data") if is_object(reply.error) else None
    kept = is_object(data) and is_array(data.get("supported")) and data.get("requested") == ANCIENT
    require(kept, f"data with supported and the requested {ANCIENT}", format_value(data))


@TABLE.add("versioning.per-request-decision")
async def each_request_is_judged_by_its_own_version(session: Session) -> None:
    key = str(session.revision.protocol.facts.meta.protocol_version)
    refused = await session.ask(session.liveness, meta={key: ANCIENT})
    require(refused.result is None, f"an error for the version {ANCIENT}", refused.text)
    served = await session.ask(session.liveness)
    result_of(served, "a request after one of another version")


@TABLE.add("versioning.modern-only-rejects-initialize")
async def initialize_is_refused_where_it_is_gone(session: Session) -> None:
    applies(not _versions(session, handshake=True), "the server speaks revisions with initialize")
    async with session.open_another(is_open=False) as other:
        reply = await other.connection.send(encode(_initialize(other)), ["legacy"])
        require_error(reply, what="for initialize")


@TABLE.add("versioning.modern-only-names-versions")
async def the_refusal_names_the_versions(session: Session) -> None:
    applies(not _versions(session, handshake=True), "the server speaks revisions with initialize")
    async with session.open_another(is_open=False) as other:
        reply = await other.connection.send(encode(_initialize(other)), ["legacy"])
        applies(is_object(reply.error), "the server does not refuse initialize by an error")
        named = session.version in json.dumps(reply.error)
        require(named, f"{session.version} in the error to initialize", reply.text)


def _initialize(session: Session) -> Json:
    params = {"protocolVersion": ANCIENT, "capabilities": {}, "clientInfo": _IMPLEMENTATION}
    return {"jsonrpc": "2.0", "id": "legacy", "method": "initialize", "params": params}


@TABLE.add("ping.removed")
async def ping_is_gone(session: Session) -> None:
    require_error(await session.ask("ping"), METHOD_NOT_FOUND, what="for ping")


@TABLE.add("logging.set-level-removed")
async def the_level_is_not_set_for_all(session: Session) -> None:
    reply = await session.ask("logging/setLevel", {"level": "warning"})
    require_error(reply, METHOD_NOT_FOUND, what="for logging/setLevel")


@TABLE.add("resources.subscribe-method-removed")
async def resources_are_not_subscribed_to_one_by_one(session: Session) -> None:
    reply = await session.ask("resources/subscribe", {"uri": "mcpgen://no-such-resource"})
    require_error(reply, METHOD_NOT_FOUND, what="for resources/subscribe")
