"""Questions of a handler to the client, with the same calls in every revision.

Source: client/elicitation, client/sampling, client/roots; basic/patterns/mrtr (2026-07-28).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, cast, overload

from ....foreign_text import WEB_SCHEMES
from ....runtime.concurrency import check_own_failure
from ....runtime.request_context import RequestContext
from ..context import Context
from ..key_ring import server_keys
from ..server import ServerKernel
from .input_required import (
    InputRequired,
    OpenURLElicitations,
    RequestStateSigner,
    URLElicitationRequiredError,
)

if TYPE_CHECKING:
    from ....absence import NoOptions
    from .elicitation import Accepted, Cancelled, Declined
    from .multi_round_trip import MultiRoundTrip, Question
    from .sampling_and_roots import (
        IncludeContext,
        MessageLike,
        ModelPreferences,
        Root,
        Sampled,
        ToolChoice,
    )

_T = TypeVar("_T")
_T1 = TypeVar("_T1")
_T2 = TypeVar("_T2")
_T3 = TypeVar("_T3")


class ElicitationOptions(TypedDict, total=False):
    """Options of a server whose handlers ask the client.

    Attributes:
        state_seconds: How long a request state is valid, which limits the time for answers;
            1800 by default.
    """

    state_seconds: float


class ElicitingServer(ServerKernel):
    """A server whose handlers ask the client."""

    def _use_options(self, options: dict[str, Any]) -> None:
        hooks = self._dispatcher.hooks
        keys, seconds = server_keys(hooks, options), options.pop("state_seconds", 1800.0)
        hooks.round_trips = ServerRoundTrips(RequestStateSigner(self.name, keys, seconds))
        super()._use_options(options)

    async def elicitation_complete(self, elicitation_id: str) -> bool:
        """Notify the client that a URL elicitation is complete.

        Has to run in the event loop that serves the client.

        Returns:
            Whether the elicitation was open. Revisions without elicitation ids have no open ones.

        Source: client/elicitation#completion-notifications-for-url-mode-elicitation.
        """
        for each in self._dispatcher.all_servers():
            round_trips = each.hooks.round_trips
            if isinstance(round_trips, ServerRoundTrips) and (
                await round_trips.url_elicitations.complete(elicitation_id)
            ):
                return True
        return False


class ServerRoundTrips:
    """The questions of the handlers of one server.

    Args:
        signer: Signs and verifies request states.

    Attributes:
        signer: As passed.
        url_elicitations: The open URL elicitations.
    """

    def __init__(self, signer: RequestStateSigner) -> None:
        self.signer = signer
        self.url_elicitations = OpenURLElicitations()

    def check(self, context: ClientQuestions) -> None:
        """Check the state of a request that continues an earlier one.

        Raises:
            InvalidParamsError: The state is invalid.
        """
        context.multi_round_trip()

    async def result(self, context: ClientQuestions, handler: Coroutine[Any, Any, Any]) -> Any:
        """The result of a handler, or the result that asks for the input that the handler needs.

        An open question overrides the handler's own result and errors: the handler runs again
        later.
        """
        try:
            result = await handler
        except URLElicitationRequiredError as error:
            return context.url_elicitation_result(error)
        except BaseException as error:
            if context.questions is None or not context.questions.is_pending:
                raise
            await check_own_failure(error)
            return context.questions.pending_result()
        if context.questions is not None and context.questions.is_pending:
            return context.questions.pending_result()
        if isinstance(result, InputRequired):
            return context.multi_round_trip().explicit_result(result)
        return result


def asking_context(context: Context[Any]) -> ClientQuestions:
    """A context of this package, all of which can ask the client."""
    return cast("ClientQuestions", context)  # a base of each class of contexts


class ClientQuestions:
    """The part of a `Context` that asks the client.

    `elicit`, `elicit_url`, `sample` and `list_roots` ask the client. Some revisions send a request
    to the client. In others the question ends the handler, which runs again from the start when the
    answer has arrived: side effects belong after the last question, and values that differ between
    runs belong in `once`. The client keeps the earlier answers; they are signed but not encrypted.

    Attributes:
        request_context: The request.
        questions: Questions and answers of the request; `None` before the first question.
    """

    if not TYPE_CHECKING:
        __slots__ = ()  # those of `Context` hold the attributes

    request_context: RequestContext
    questions: MultiRoundTrip | None
    _round_trips: ServerRoundTrips

    def multi_round_trip(self) -> MultiRoundTrip:
        """The questions and answers of the request, created if there are none yet."""
        if self.questions is None:
            from .multi_round_trip import MultiRoundTrip  # few servers need it

            self.questions = MultiRoundTrip(self.request_context, self._round_trips.signer)
        return self.questions

    @property
    def input_responses(self) -> Mapping[str, Any]:
        """Answers to an earlier `InputRequired`, as wire objects by its keys.

        Source: basic/patterns/mrtr (2026-07-28).
        """
        return self.multi_round_trip().responses

    @property
    def request_state(self) -> str | None:
        """State of an earlier `InputRequired`; `None` if there is none.

        A request with a state that this server did not sign for it, that was altered or that has
        expired, is refused before the handler runs.

        Source: basic/patterns/mrtr (2026-07-28).
        """
        return self.multi_round_trip().state

    @overload
    async def elicit(
        self, message: str, form: type[_T], *, key: str | None = ..., timeout: float | None = ...
    ) -> Accepted[_T] | Declined | Cancelled: ...

    @overload
    async def elicit(
        self,
        message: str,
        form: Mapping[str, Any],
        *,
        key: str | None = ...,
        timeout: float | None = ...,
    ) -> Accepted[dict[str, Any]] | Declined | Cancelled: ...

    async def elicit(
        self,
        message: str,
        form: Any = None,
        *,
        key: str | None = None,
        timeout: float | None = None,
        **others: Unpack[NoOptions],
    ) -> Accepted[Any] | Declined | Cancelled:
        """Ask the user to fill in a form.

        Use `elicit_url` for secrets.

        Args:
            message: The question, and its reason.
            form: A dataclass, TypedDict, Struct or pydantic model of strings, numbers, booleans,
                dates, and choices (Literal, Enum, lists of them; see `titles`); one of these types,
                for a single value; or a flat JSON Schema, which is sent unchanged.
            key: Key of the input request, visible to the client; generated if `None`.
            timeout: Seconds to wait where a request is sent; `None` for no limit.

        Returns:
            `Accepted` with the content as a value of the type (a dict for a schema),
            `Declined` or `Cancelled`.

        Raises:
            TypeError: The type can't be a form.
            MissingCapabilityError: The client did not declare form elicitation.
            LocalProtocolError: The revision has no such form, or the method can't ask.
            RemoteError: The client refused.
            RemoteProtocolError: The content does not fit the form.
            RequestTimeoutError: No response in time.

        Source: client/elicitation.
        """
        if others:
            raise _keyword_error("ctx.elicit", others)
        from . import elicitation  # used by few tools, as are the modules below

        elicitation_form = elicitation.form_of(form)
        question = elicitation.form_question(message, elicitation_form, self.request_context)

        def read(wire: Any) -> Accepted[Any] | Declined | Cancelled:
            return elicitation.answer_of(wire, elicitation_form.content)

        return await self._ask(question, read, key, timeout)

    async def elicit_url(
        self,
        message: str,
        url: str,
        *,
        elicitation_id: str | None = None,
        schemes: Collection[str] = WEB_SCHEMES,
        key: str | None = None,
        timeout: float | None = None,
    ) -> Accepted[None] | Declined | Cancelled:
        """Ask the user to visit a web page, for data that must not pass through the client.

        `Accepted` means that the user agreed to the visit, not that the page has been completed:
        check that, and ask again if necessary. Where ids exist,
        `Server.elicitation_complete` notifies the client of the completion.

        Args:
            message: Why the visit is needed.
            url: URL of the page, without secrets, the same in each run (see `once`).
            elicitation_id: Id in revisions that have one; generated if `None`.
            schemes: Allowed schemes of the URL; most clients open http and https only.
            key: Key of the input request, visible to the client; generated if `None`.
            timeout: Seconds to wait where a request is sent; `None` for no limit.

        Raises:
            ValueError: Not a URL of an allowed scheme, or the id is in use.
            MissingCapabilityError: The client did not declare URL elicitation.
            LocalProtocolError: The method of the request can't ask.
            RemoteError: The client refused.
            RequestTimeoutError: No response in time.

        Source: client/elicitation#url-mode-elicitation-requests.
        """
        from . import elicitation

        open_elicitations = self._round_trips.url_elicitations
        question = elicitation.url_question(
            message, url, elicitation_id, self.request_context, open_elicitations, schemes
        )

        def read(wire: Any) -> Accepted[None] | Declined | Cancelled:
            return elicitation.answer_of(wire, lambda _: None)

        return await self._ask(question, read, key, timeout)

    async def sample(
        self,
        messages: str | Sequence[MessageLike],
        *,
        max_tokens: int = 1024,
        system_prompt: str | None = None,
        temperature: float | None = None,
        stop_sequences: Sequence[str] | None = None,
        model_preferences: ModelPreferences | Mapping[str, Any] | None = None,
        include_context: IncludeContext | None = None,
        tools: Sequence[Any] | None = None,
        tool_choice: ToolChoice | None = None,
        metadata: Mapping[str, Any] | None = None,
        key: str | None = None,
        timeout: float | None = None,
    ) -> Sampled:
        """Ask the client's model for a message.

        Args:
            messages: The conversation so far, oldest first; a string is one user message. It may
                hold return values of `sample`, followed by tool results.
            max_tokens: Most tokens to generate.
            system_prompt: Instructions; the client may change them.
            temperature: Randomness, on the scale of the model's provider.
            stop_sequences: Texts that end the generation.
            model_preferences: Advice for the choice of the model.
            include_context: Servers whose context the client adds.
            tools: Tools that the model may use, typed or as wire objects: name, description,
                inputSchema. They need not be tools of this server.
            tool_choice: Whether the model has to use a tool.
            metadata: Parameters for the model's provider.
            key: Key of the input request, visible to the client; generated if `None`.
            timeout: Seconds to wait where a request is sent; `None` for no limit.

        Raises:
            MissingCapabilityError: The client did not declare sampling, or its tools or context.
            LocalProtocolError: The revision lacks a param, or the messages break its rules.
            RemoteError: The client refused.
            RequestTimeoutError: No response in time.

        Source: client/sampling.
        """
        from . import sampling_and_roots

        options = {
            "maxTokens": max_tokens,
            "systemPrompt": system_prompt,
            "temperature": temperature,
            "stopSequences": stop_sequences,
            "modelPreferences": model_preferences,
            "includeContext": include_context,
            "tools": tools,
            "toolChoice": tool_choice,
            "metadata": metadata,
        }
        question = sampling_and_roots.sampling_question(messages, self.request_context, options)
        return await self._ask(question, sampling_and_roots.sampled_of, key, timeout)

    async def list_roots(
        self, *, key: str | None = None, timeout: float | None = None
    ) -> list[Root]:
        """The directories and files that the client wants the server to work on.

        Args:
            key: Key of the input request, visible to the client; generated if `None`.
            timeout: Seconds to wait where a request is sent; `None` for no limit.

        Raises:
            MissingCapabilityError: The client did not declare roots; nothing was sent.
            LocalProtocolError: The method of the request can't ask.
            RemoteError: The client refused.
            RequestTimeoutError: No response in time.

        Source: client/roots.
        """
        from . import sampling_and_roots

        question = sampling_and_roots.ROOTS_QUESTION
        return await self._ask(question, sampling_and_roots.roots_of, key, timeout)

    @overload
    async def ask_all(
        self, first: Awaitable[_T1], second: Awaitable[_T2], /
    ) -> tuple[_T1, _T2]: ...

    @overload
    async def ask_all(
        self, first: Awaitable[_T1], second: Awaitable[_T2], third: Awaitable[_T3], /
    ) -> tuple[_T1, _T2, _T3]: ...

    @overload
    async def ask_all(self, *questions: Awaitable[_T]) -> tuple[_T, ...]: ...

    async def ask_all(self, *questions: Awaitable[Any]) -> tuple[Any, ...]:
        """Ask several questions at once, in one round trip where questions end the handler.

            name, roots = await ctx.ask_all(ctx.elicit("Who?", Name), ctx.list_roots())

        Args:
            questions: Coroutines of this context, or coroutines that await some.

        Raises:
            Exception: The first failure; the other questions are cancelled.
        """
        from .multi_round_trip import gather

        return tuple(await gather(questions))

    @overload
    async def once(self, key: str, function: Callable[[], Awaitable[_T]]) -> _T: ...

    @overload
    async def once(self, key: str, function: Callable[[], _T]) -> _T: ...

    async def once(self, key: str, function: Callable[[], Any]) -> Any:
        """The value that a function returned in the first run of the handler for this request.

            token = await ctx.once("token", lambda: secrets.token_urlsafe(16))

        Args:
            key: Key of the value in this request.
            function: Returns a JSON value. The client can read it.

        Raises:
            TypeError: Not a JSON value.
        """
        return await self.multi_round_trip().once(key, function)

    async def _ask(
        self,
        question: Question,
        read: Callable[[Any], _T],
        key: str | None,
        timeout: float | None,
    ) -> _T:
        """The client's answer to a question, as its type."""
        return read(await self.multi_round_trip().ask(question, key, timeout))

    def url_elicitation_result(self, error: URLElicitationRequiredError) -> dict[str, Any]:
        """The result for a handler that raised this error; see `elicitation.required_result`."""
        from . import elicitation

        return elicitation.required_result(
            error,
            self.request_context,
            self.multi_round_trip(),
            self._round_trips.url_elicitations,
        )


def _keyword_error(call: str, names: Collection[str]) -> TypeError:
    from ....absence import keyword_error  # for the error only

    return keyword_error(call, names)
