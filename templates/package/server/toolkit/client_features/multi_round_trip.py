"""Questions of a handler to its client, with the same calls in every revision.

Where a server may send requests, a question is a request and its response is the answer. Where a
result may ask for input instead, `InputPending` ends the handler, and the result of its request
carries the open questions. The client sends the request again with the answers, and the handler
runs again from the start, possibly in another process. Earlier answers are in the signed
`requestState`, so no process keeps them.

Each answer has a key. The default key is a digest of the question: concurrent tasks find their
answers in any order, and a changed question is a new one. For a key that the handler chose, the
state keeps the digest of the question.

Source: basic/patterns/mrtr (2026-07-28), client/elicitation, client/sampling, client/roots.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import anyio.lowlevel
import msgspec

from ...._wire import ValidationError, convert, encode, error_text, is_many, is_object, to_builtins
from ....errors import (
    INVALID_PARAMS,
    InvalidParamsError,
    LocalProtocolError,
    MissingCapabilityError,
    RemoteProtocolError,
)
from ....facts import Method, Revision
from ....foreign_text import safe_repr
from ....protocol.lifecycle import missing_capability
from ....runtime.pending_requests import OnProgress
from ....runtime.request_context import PRINCIPAL, RequestContext
from .input_required import InputPending, InputRequired, RequestStateSigner

_KEY_DIGITS = 16
_NOT_REPEATED = ("_meta", "inputResponses", "requestState")
"""Params in which a retry differs from the first request."""

_encode_sorted = msgspec.json.Encoder(order="deterministic").encode
_logger = logging.getLogger(__name__)


class Question(msgspec.Struct, frozen=True):
    """A request to the client, or an input request.

    Attributes:
        method: The method, such as `elicitation/create`.
        params: Its params as wire object in the revision's form, or `None`.
        capability: The client capability; also the prefix of default keys.
        repeats: Whether an equal question in the same run needs an answer of its own.
        on_progress: Called with progress of a request to the client; `None` to ask for none.
    """

    method: str
    params: Mapping[str, Any] | None
    capability: str
    repeats: bool = True
    on_progress: OnProgress | None = None

    def digest(self) -> str:
        """A digest of method and params, which identifies the question."""
        return _digest(self.method, self.params)


class _State(msgspec.Struct, omit_defaults=True):
    """The content of a request state.

    Attributes:
        answers: The digest of each answered question, and the answer as wire object, by key.
        asked: The digest of each open question, by key.
        kept: Values of `Context.once`.
        own: The state of an `InputRequired` that the handler returned.
    """

    answers: dict[str, tuple[str, Any]] = {}
    asked: dict[str, str] = {}
    kept: dict[str, msgspec.Raw] = {}
    own: str | None = None


_decode_state = msgspec.json.Decoder(_State).decode


class MultiRoundTrip:
    """The questions and answers of one request.

    Args:
        request: The request.
        signer: Verifies the state that came with it, and signs the state of its result.

    Attributes:
        responses: Answers that came with the request, as wire objects by key.
        state: The state of the `InputRequired` that the handler returned in the round before.

    Raises:
        InvalidParamsError: The state of the request is invalid.
    """

    def __init__(self, request: RequestContext, signer: RequestStateSigner) -> None:
        self._request = request
        self._signer = signer
        signed: str | None = getattr(request.params, "request_state", None)
        responses: Any = getattr(request.params, "input_responses", None)
        self.responses: Mapping[str, Any] = to_builtins(responses or {})
        state = _State() if signed is None else self._verify_state(signed)
        self.state = state.own
        self._asked_before = state.asked
        self._kept = state.kept
        self._answers = state.answers
        for key, answer in self.responses.items():
            if signed is None:
                self._answers[key] = ("", answer)
            elif key in state.asked:
                self._answers[key] = (state.asked[key], answer)
        self._open: dict[str, Question] = {}
        self._used_keys: set[str] = set()
        self._repetitions: Counter[str] = Counter()

    @property
    def is_pending(self) -> bool:
        """Whether a question of the handler has no answer yet."""
        return bool(self._open)

    async def ask(self, question: Question, key: str | None, timeout: float | None) -> Any:
        """The client's answer to a question, as wire object.

        Args:
            key: Key of the answer; `None` for a key made from the question.
            timeout: Seconds to wait where a request is sent; `None` for no limit.

        Raises:
            InputPending: The client will send the answer with a retry of the request.
            MissingCapabilityError: The client did not declare a required capability.
            LocalProtocolError: The revision or the method of the request does not allow questions.
            RemoteError: The client refused.
            RemoteProtocolError: The answer has the wrong form.
            ValueError: The key is in use for another question.
        """
        revision = self._request.revision
        row = askable_method(self._request, question.method, question.capability, question.params)
        check_params(row, question.params, revision)
        name = self._key(question, key)
        if revision.server_requests:
            result = await self._request.request(
                row.name, question.params, timeout=timeout, on_progress=question.on_progress
            )
            return to_builtins(result)
        if not self._request.method.facts.input_required:
            method = self._request.method.name
            raise LocalProtocolError(f"{method} can't ask for input in {revision.name}")
        answer = self._answer(name, question.digest())
        if answer is None:
            self._open[name] = question
            raise InputPending
        error = mismatch(answer, row.result)
        if error:
            raise RemoteProtocolError(f"inputResponses.{name}: {error}", code=INVALID_PARAMS)
        return answer

    async def once(self, key: str, function: Callable[[], Any]) -> Any:
        """The JSON value that a function returned when it was first called for this key."""
        if key not in self._kept:
            result = function()
            value = await result if inspect.isawaitable(result) else result
            encoded = encode(value)
            if msgspec.json.decode(encoded) != value:
                raise TypeError(f"{key}: expected a JSON value, got {value!r}")
            self._kept.setdefault(key, msgspec.Raw(encoded))  # another task may have been first
        return msgspec.json.decode(self._kept[key])  # a copy: handlers may change it

    def pending_result(self) -> dict[str, Any]:
        """The result with the open questions, as wire object.

        Raises:
            InternalError: The request state is too large.
        """
        if self._asked_before and not self._asked_before.keys() & self._used_keys:
            _logger.warning(
                "%s asked something else than before it was answered; what changes from run to "
                "run is never answered (see Context.once)",
                self._request.method.name,
            )
        requests = {key: _input_request(question) for key, question in self._open.items()}
        asked = {key: question.digest() for key, question in self._open.items()}
        return {
            "resultType": "input_required",
            "inputRequests": requests,
            "requestState": self._sign_state(asked, self.state),
        }

    def explicit_result(self, required: InputRequired) -> dict[str, Any]:
        """The result for an `InputRequired` that a handler returned, as wire object.

        Raises:
            InternalError: The revision has no such result, or the request state is too large.
            MissingCapabilityError: The client did not declare a required capability.
        """
        required.check(self._request)
        result: dict[str, Any] = {"resultType": "input_required"}
        if required.requests:
            result["inputRequests"] = required.requests
        asked = {
            key: _digest(request["method"], request.get("params"))
            for key, request in required.requests.items()
        }
        if required.state is not None or self._answers or self._kept:
            result["requestState"] = self._sign_state(asked, required.state)
        return result

    def _key(self, question: Question, key: str | None) -> str:
        """The key of a question: the handler's own, or one made from the question."""
        if key is None:
            key = f"{question.capability}-{question.digest()}"
            if question.repeats:
                self._repetitions[key] += 1
                if (repetition := self._repetitions[key]) > 1:
                    key = f"{key}-{repetition}"
        elif key in self._used_keys:
            raise ValueError(f"key {key!r} is in use for another question of this request")
        self._used_keys.add(key)
        return key

    def _answer(self, key: str, digest: str) -> Any:
        """The answer under a key to the question with this digest; `None` if there is none."""
        asked_digest, answer = self._answers.get(key, (digest, None))
        if asked_digest not in ("", digest):
            _logger.warning("the question under the key %r has changed; it is asked again", key)
            del self._answers[key]
            return None
        if answer is not None:
            self._answers[key] = (digest, answer)
        return answer

    def _verify_state(self, signed: str) -> _State:
        payload = self._signer.verify(signed, _binding(self._request), _owner())
        try:
            return _decode_state(payload)
        except msgspec.DecodeError as error:
            raise InvalidParamsError("requestState: expected one of this version") from error

    def _sign_state(self, asked: dict[str, str], own: str | None) -> str:
        answers = {key: answer for key, answer in self._answers.items() if answer[0]}
        state = _State(answers, asked, self._kept, own)
        return self._signer.sign(encode(state), _binding(self._request), _owner())


def askable_method(
    request: RequestContext, method: str, capability: str, params: Mapping[str, Any] | None
) -> Method:
    """The row of a question in the method table of a request's revision, if it may be asked.

    Args:
        request: The request.
        method: The question's method.
        capability: The client capability that the method belongs to.
        params: The params of the question, which may require further capabilities.

    Raises:
        MissingCapabilityError: The client did not declare a required capability, or the revision
            does not have the method.
        LocalProtocolError: The server keeps no sessions, and the revision needs one to ask.
    """
    revision = request.revision
    row = revision.server_requests.get(method) or revision.input_requests.get(method)
    request.peer.connection.state.check_answerable(method)
    path = (
        (capability,) if row is None else missing_capability(row, params, request.peer_capabilities)
    )
    if row is None or path is not None:
        raise MissingCapabilityError(path or (capability,), f"{method} in {revision.name}")
    return row


def check_params(row: Method, params: Mapping[str, Any] | None, revision: Revision) -> None:
    """Check that a revision has all members of the params of a question.

    Raises:
        LocalProtocolError: The revision lacks a member, or the params have another form.
    """
    error = mismatch(params or {}, row.params) if row.params is not None else None
    if error:
        raise LocalProtocolError(f"{row.name}: not possible in {revision.name}: {error}")


def _input_request(question: Question) -> dict[str, Any]:
    request: dict[str, Any] = {"method": question.method}
    if question.params is not None:
        request["params"] = question.params
    return request


def _digest(method: str, params: Mapping[str, Any] | None) -> str:
    return hashlib.sha256(_encode_sorted([method, params])).hexdigest()[:_KEY_DIGITS]


def _binding(request: RequestContext) -> bytes:
    """Bytes that identify a request and its retries."""
    raw = request.raw_params
    params: dict[str, Any] = {} if raw is None else msgspec.json.decode(raw)
    repeated = {name: value for name, value in params.items() if name not in _NOT_REPEATED}
    return _encode_sorted([request.method.name, repeated])


def _owner() -> bytes:
    """Bytes that identify the principal of a state; empty without authentication."""
    principal = PRINCIPAL.get()
    return b"" if principal.is_anonymous else _encode_sorted(principal.identity)


async def gather(questions: tuple[Awaitable[Any], ...]) -> list[Any]:
    """Await several questions; all are asked before `InputPending` is raised.

    Returns:
        The answers, in the order of the questions.

    Raises:
        InputPending: At least one question has no answer yet.
        Exception: The first failure; the other questions are cancelled.
    """
    answers: list[Any] = [None] * len(questions)
    is_pending = False
    failures: list[Exception] = []

    async def run(at: int, question: Awaitable[Any]) -> None:
        nonlocal is_pending
        try:
            answers[at] = await question
        except InputPending:
            is_pending = True
        except Exception as error:
            failures.append(error)
            tasks.cancel_scope.cancel()

    try:
        async with anyio.create_task_group() as tasks:
            for at, question in enumerate(questions):
                tasks.start_soon(run, at, question)
                await anyio.lowlevel.checkpoint()  # so that they ask in their order
    finally:
        for question in questions:
            if inspect.iscoroutine(question):
                question.close()  # it was cancelled before it started
    if failures:
        raise failures[0]
    if is_pending:
        raise InputPending
    return answers


def mismatch(wire: Any, kind: Any) -> str | None:
    """The reason why a type can't hold all members of a wire object, or `None` if it can."""
    try:
        converted = to_builtins(convert(wire, kind))
    except ValidationError as error:
        return error_text(error)
    return _lost_member(wire, converted, "")


def _lost_member(value: Any, converted: Any, path: str) -> str | None:
    """An error text about the first member that a conversion dropped, or `None`."""
    if is_object(value) and is_object(converted):
        for name, member in value.items():
            here = f"{path}.{name}" if path else name
            if name not in converted:
                return f"there is no {safe_repr(here)}"
            if lost := _lost_member(member, converted[name], here):
                return lost
    elif is_many(value) and is_many(converted):
        for at, (item, kept) in enumerate(zip(value, converted, strict=True)):
            if lost := _lost_member(item, kept, f"{path}[{at}]"):
                return lost
    return None
