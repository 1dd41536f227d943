"""What a handler asks the client: the same calls, whichever way the revision has for it.

Where a server may send requests, the question goes out and its answer comes back. Where results
may ask for input instead, the handler is left (`Left`) and its request is answered by the open
questions; the client sends it again with the answers, and the handler runs again from the start,
in whichever process. What it was told so far comes along in `requestState`, sealed, so that no
process has to keep anything.

An answer belongs to a key. Without one of the user's own, the key is made of what is asked: so
questions of tasks that run side by side find their answers in any order, and a question that has
changed is a new one. A key of the user's own goes with a digest of what was asked under it.

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

from ...._wire import encode, to_builtins
from ....errors import (
    INVALID_PARAMS,
    InvalidParamsError,
    LocalProtocolError,
    MissingCapabilityError,
    RemoteProtocolError,
)
from ....facts import Method, Revision
from ....protocol.capabilities import missing
from ....runtime.request_context import RequestContext
from .. import revision_types
from .input_required import InputRequired, Left
from .request_state import RequestStateSigner

_KEY_DIGITS = 16
_APART = ("_meta", "inputResponses", "requestState")
"""Params that a retry does not share with the request that it repeats."""

_encode_sorted = msgspec.json.Encoder(order="deterministic").encode
_logger = logging.getLogger(__name__)


class Question(msgspec.Struct, frozen=True):
    """Something to ask the client.

    Attributes:
        method: The request, such as `elicitation/create`.
        params: Its params as wire object in the revision's shape, or `None`.
        word: What keys of such questions begin with.
        repeats: Whether it is a question anew each time that it is asked in one run.
    """

    method: str
    params: Mapping[str, Any] | None
    word: str
    repeats: bool = True

    def digest(self) -> str:
        """What tells it from other questions."""
        return _digest(self.method, self.params)


class _State(msgspec.Struct, omit_defaults=True):
    """What a server has to know when a request comes again.

    Attributes:
        answers: By key: the digest of the question, and the answer as wire object.
        asked: By key: the digest of each question left open.
        kept: Values that the handler wants to find again.
        own: The state that the handler gave itself.
    """

    answers: dict[str, tuple[str, Any]] = {}
    asked: dict[str, str] = {}
    kept: dict[str, msgspec.Raw] = {}
    own: str | None = None


_decode_state = msgspec.json.Decoder(_State).decode


class MultiRoundTrip:
    """What the client was asked on behalf of one request, and what it said.

    Args:
        exchange: The request.
        sealer: Opens the state that came with it, and seals the one that leaves.

    Attributes:
        responses: Answers that came with the request, as wire objects by key.
        state: The state that the handler gave itself in the round before, if it did.

    Raises:
        InvalidParamsError: The request's state is not one that was given for it.
    """

    def __init__(self, exchange: RequestContext, sealer: RequestStateSigner) -> None:
        self._exchange = exchange
        self._sealer = sealer
        sealed: str | None = getattr(exchange.params, "request_state", None)
        given: Any = getattr(exchange.params, "input_responses", None)
        self.responses: Mapping[str, Any] = to_builtins(given or {})
        state = _State() if sealed is None else self._opened(sealed)
        self.state = state.own
        self._asked = state.asked
        self._kept = state.kept
        self._answers = state.answers
        for key, answer in self.responses.items():
            if sealed is None:
                self._answers[key] = ("", answer)
            elif key in state.asked:
                self._answers[key] = (state.asked[key], answer)
        self._open: dict[str, Question] = {}
        self._taken: set[str] = set()
        self._counted: Counter[str] = Counter()

    @property
    def unanswered(self) -> bool:
        """Whether the handler asked what the client has not answered yet."""
        return bool(self._open)

    async def ask(self, question: Question, key: str | None, timeout: float | None) -> Any:
        """Ask the client, and give its answer as wire object.

        Args:
            question: What to ask.
            key: What the answer is kept under, if not under a key made of the question.
            timeout: Seconds to wait where a request is sent; `None` for no limit.

        Raises:
            Left: The answer comes with another request.
            MissingCapabilityError: The client did not declare that it can be asked this.
            LocalProtocolError: There is no way to ask it in the revision, or for this request.
            RemoteError: The client refused.
            RemoteProtocolError: The answer is none.
            ValueError: The key stands for another question already.
        """
        revision = self._exchange.revision
        row = askable(self._exchange, question.method, question.word, question.params)
        check_possible(row, question.params, revision)
        name = self._key(question, key)
        if revision.server_requests:
            sent = await self._exchange.request(row.name, question.params, timeout=timeout)
            return to_builtins(sent)
        if not revision.facts.method(self._exchange.method.name).input_required:
            asker = self._exchange.method.name
            raise LocalProtocolError(f"{asker} can't ask for input in {revision.name}")
        answer = self._answer(name, question.digest())
        if answer is None:
            self._open[name] = question
            raise Left
        wrong = revision_types.refusal(answer, row.result)
        if wrong:
            raise RemoteProtocolError(f"inputResponses.{name}: {wrong}", code=INVALID_PARAMS)
        return answer

    async def once(self, key: str, function: Callable[[], Any]) -> Any:
        """The JSON value that a function gave when it was first called for this key."""
        if key not in self._kept:
            made = function()
            value = await made if inspect.isawaitable(made) else made
            encoded = encode(value)
            if msgspec.json.decode(encoded) != value:
                raise TypeError(f"{key}: expected a JSON value, got {value!r}")
            self._kept.setdefault(key, msgspec.Raw(encoded))  # another task may have been first
        return msgspec.json.decode(self._kept[key])  # a fresh one: no handler changes what is kept

    def result(self) -> dict[str, Any]:
        """The result that asks the open questions, as wire object.

        Raises:
            InternalError: What is known so far is too much for a state.
        """
        if self._asked and not self._asked.keys() & self._taken:
            _logger.warning(
                "%s asked something else than before it was answered; what changes from run to "
                "run is never answered (see Context.once)",
                self._exchange.method.name,
            )
        requests = {key: _entry(question) for key, question in self._open.items()}
        asked = {key: question.digest() for key, question in self._open.items()}
        return {
            "resultType": "input_required",
            "inputRequests": requests,
            "requestState": self._sealed(asked, self.state),
        }

    def sealed(self, wanted: InputRequired) -> dict[str, Any]:
        """The result that a handler returned itself, as wire object.

        Raises:
            InternalError: The revision has no such result, or the state is too much.
            MissingCapabilityError: The client did not declare that it can be asked this.
        """
        wanted.check(self._exchange)
        made: dict[str, Any] = {"resultType": "input_required"}
        if wanted.requests:
            made["inputRequests"] = wanted.requests
        asked = {
            key: _digest(request["method"], request.get("params"))
            for key, request in wanted.requests.items()
        }
        if wanted.state is not None or self._answers or self._kept:
            made["requestState"] = self._sealed(asked, wanted.state)
        return made

    def _key(self, question: Question, key: str | None) -> str:
        """The key of a question, which is made of it unless the user chose one."""
        if key is None:
            key = f"{question.word}-{question.digest()}"
            if question.repeats:
                self._counted[key] += 1
                if (time := self._counted[key]) > 1:
                    key = f"{key}-{time}"
        elif key in self._taken:
            raise ValueError(f"key {key!r} is in use for another question of this request")
        self._taken.add(key)
        return key

    def _answer(self, key: str, digest: str) -> Any:
        """The answer under a key to this very question; `None` if there is none."""
        asked, answer = self._answers.get(key, (digest, None))
        if asked not in ("", digest):
            _logger.warning("the question under the key %r has changed; it is asked again", key)
            del self._answers[key]
            return None
        if answer is not None:
            self._answers[key] = (digest, answer)
        return answer

    def _opened(self, sealed: str) -> _State:
        payload = self._sealer.open(sealed, _binding(self._exchange))
        try:
            return _decode_state(payload)
        except msgspec.DecodeError as error:
            raise InvalidParamsError("requestState: expected one of this version") from error

    def _sealed(self, asked: dict[str, str], own: str | None) -> str:
        answers = {key: told for key, told in self._answers.items() if told[0]}
        state = _State(answers, asked, self._kept, own)
        return self._sealer.seal(encode(state), _binding(self._exchange))


def askable(
    exchange: RequestContext, method: str, word: str, params: Mapping[str, Any] | None
) -> Method:
    """The row of a question in the revision of a request.

    Args:
        exchange: The request.
        method: What is to be asked.
        word: The capability that it belongs to.
        params: Its params, as far as they need something to be declared.

    Raises:
        MissingCapabilityError: The client did not declare what it needs, or can't in its revision.
    """
    revision = exchange.revision
    row = revision.server_requests.get(method) or revision.input_requests.get(method)
    path = (word,) if row is None else missing(row, params, exchange.peer_capabilities)
    if row is None or path is not None:
        raise MissingCapabilityError(path or (word,), f"{method} in {revision.name}")
    return row


def check_possible(row: Method, params: Mapping[str, Any] | None, revision: Revision) -> None:
    """Hold params against what a revision can carry.

    Raises:
        LocalProtocolError: It can't carry all of them.
    """
    refused = revision_types.refusal(params or {}, row.params) if row.params is not None else None
    if refused:
        raise LocalProtocolError(f"{row.name}: not possible in {revision.name}: {refused}")


def _entry(question: Question) -> dict[str, Any]:
    made: dict[str, Any] = {"method": question.method}
    if question.params is not None:
        made["params"] = question.params
    return made


def _digest(method: str, params: Mapping[str, Any] | None) -> str:
    return hashlib.sha256(_encode_sorted([method, params])).hexdigest()[:_KEY_DIGITS]


def _binding(exchange: RequestContext) -> bytes:
    """What tells a request, and its retries, from all others."""
    raw = exchange.raw_params
    params: dict[str, Any] = {} if raw is None else msgspec.json.decode(raw)
    salient = {name: value for name, value in params.items() if name not in _APART}
    return _encode_sorted([exchange.method.name, salient])


async def all_of(asks: tuple[Awaitable[Any], ...]) -> list[Any]:
    """What several askers were told, in their order; all of them ask before the handler is left.

    Raises:
        Left: One of them was left.
        Exception: What the first of them to fail raised; the others are cancelled.
    """
    told: list[Any] = [None] * len(asks)
    left: list[Left] = []
    failed: list[Exception] = []

    async def run(at: int, ask: Awaitable[Any]) -> None:
        try:
            told[at] = await ask
        except Left as leaving:
            left.append(leaving)
        except Exception as error:
            failed.append(error)
            tasks.cancel_scope.cancel()

    try:
        async with anyio.create_task_group() as tasks:
            for at, ask in enumerate(asks):
                tasks.start_soon(run, at, ask)
                await anyio.lowlevel.checkpoint()  # so that they ask in their order
    finally:
        for ask in asks:
            if inspect.iscoroutine(ask):
                ask.close()  # one that was cancelled before it began
    if failed:
        raise failed[0]
    if left:
        raise Left
    return told
