"""A session in which everything that a revision has is said once, recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kit.pair import Pair
from kit.samples import PARAMS, RESULTS, URI
from kit.wire import facts, sole
from mcpgen_runtime.errors import (
    InternalError,
    MethodNotFoundError,
    MissingCapabilityError,
    ProtocolError,
    ResourceNotFoundError,
)
from mcpgen_runtime.facts import Role, other
from mcpgen_runtime.protocol.events import CancelRequest, ReportProgress, RequestReceived, SendLog

ROLES: tuple[Role, ...] = ("client", "server")
_OPENING = frozenset({"initialize"})
_RESULTS_OF_TASKS = {("server", "tasks/result"): RESULTS["elicitation/create"]}
_BY_ITSELF = frozenset({"ping", "server/discover", "logging/setLevel", "subscriptions/listen"})


def whole_session(revision: str) -> Pair:
    """A pair after both ends have said all they can say."""
    pair = Pair(revision)
    for role in ROLES:
        for method in pair.revision.requests_from(role).keys() - _OPENING:
            _ask_and_answer(pair, role, method)
    _subscribe(pair)
    for role in ROLES:
        for name in pair.revision.notifications_from(role).keys() & PARAMS.keys():
            pair.notify(role, name, PARAMS[name])
    _work_and_cancel(pair)
    _fail(pair)
    return pair


def _ask_and_answer(pair: Pair, role: Role, method: str) -> None:
    pair.ask(role, method, PARAMS[method], progress=method == "tools/call")
    if method not in _BY_ITSELF:
        pair.answer(other(role), _RESULTS_OF_TASKS.get((role, method), RESULTS.get(method)))
    if pair.revision.requests_from(role)[method].facts.input_required:
        pair.ask(role, method, PARAMS[method])
        pair.answer(other(role), _wants_input(pair))


def _wants_input(pair: Pair) -> Mapping[str, Any]:
    asked = {
        name: {"method": name, **({"params": PARAMS[name]} if PARAMS[name] else {})}
        for name in pair.revision.input_requests
    }
    return {"resultType": "input_required", "inputRequests": asked, "requestState": "s"}


def _subscribe(pair: Pair) -> None:
    if "subscriptions/listen" in pair.revision.client_requests:
        lists = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")
        wanted = {**dict.fromkeys(lists, True), "resourceSubscriptions": [URI]}
        pair.ask("client", "subscriptions/listen", {"notifications": wanted})
    else:
        pair.ask("client", "resources/subscribe", PARAMS["resources/subscribe"])
        pair.answer("server", None)


def _work_and_cancel(pair: Pair) -> None:
    log_key = facts(pair.revision.name).meta.log_level
    meta = {log_key: "debug"} if log_key else None
    id = pair.ask("client", "tools/call", PARAMS["tools/call"], progress=True, meta=meta)
    pair.deliver("server", sole(pair.server.send(ReportProgress(id, 1, 2, "half"))))
    pair.deliver("server", sole(pair.server.send(ReportProgress(id, 1.5))))
    pair.deliver("server", sole(pair.server.send(SendLog(id, "error", {"a": [1]}, "db"))))
    pair.deliver("client", sole(pair.client.send(CancelRequest(id, "no more"))))


def _fail(pair: Pair) -> None:
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
    assert pair.told("server", RequestReceived)
