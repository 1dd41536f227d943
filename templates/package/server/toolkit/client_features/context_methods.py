"""What a handler may ask its client, with the same code in every revision."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ....protocol.uris import WEB_SCHEMES
from ....runtime.request_context import RequestContext
from .feature_settings import FeatureSettings
from .url_elicitation import URLElicitationRequiredError

if TYPE_CHECKING:
    from .elicitation import Accepted, Cancelled, Declined
    from .multi_round_trip import MultiRoundTrip
    from .roots import Root
    from .sampling import IncludeContext, ModelPreferences, Said, Sampled, ToolChoice

_T = TypeVar("_T")
_T1 = TypeVar("_T1")
_T2 = TypeVar("_T2")
_T3 = TypeVar("_T3")


class ContextMethods:
    """The asking side of a `Context`.

    In some revisions a question is a request to the client. In others the handler is left when it
    asks, and runs again from the start once the answer is there; so whatever changes something
    should come after the last question, and what differs from run to run is kept by `once`. What
    was answered so far passes through the client's hands: signed, but not hidden from it.

    Args:
        exchange: The request with everything that came with it.
        means: What it asks the client with.

    Raises:
        InvalidParamsError: The request has a state that is not ours.
    """

    __slots__ = ("_dialogue", "_means", "exchange")

    def __init__(self, exchange: RequestContext, means: FeatureSettings) -> None:
        self.exchange = exchange
        self._means = means
        self._dialogue: MultiRoundTrip | None = None
        if getattr(exchange.params, "request_state", None) is not None:
            self._dialogue = means.dialogue(exchange)  # refused whatever the handler does

    @property
    def input_responses(self) -> Mapping[str, Any]:
        """Answers to what an earlier `InputRequired` asked, as wire objects by its keys.

        Source: basic/patterns/mrtr (2026-07-28).
        """
        return self.dialogue.responses

    @property
    def request_state(self) -> str | None:
        """State of an earlier `InputRequired`, as it was given; `None` if there is none.

        A state that this server did not give for this request, that was altered or has expired,
        never gets here: the request is refused.

        Source: basic/patterns/mrtr (2026-07-28).
        """
        return self.dialogue.state

    @property
    def dialogue(self) -> MultiRoundTrip:
        """What the client was asked on behalf of the request, and what it said."""
        if self._dialogue is None:
            self._dialogue = self._means.dialogue(self.exchange)
        return self._dialogue

    @property
    def unanswered(self) -> bool:
        """Whether the client was asked something that it has not answered yet."""
        return self._dialogue is not None and self._dialogue.unanswered

    @property
    def is_retry(self) -> bool:
        """Whether the client sent the request before, and now with answers or a state."""
        params = self.exchange.params
        given = getattr(params, "input_responses", None), getattr(params, "request_state", None)
        return given != (None, None)

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
        self, message: str, form: Any, *, key: str | None = None, timeout: float | None = None
    ) -> Accepted[Any] | Declined | Cancelled:
        """Have the client's user fill in a form.

        Never ask for secrets this way; `elicit_url` is for those.

        Args:
            message: What is asked, and why.
            form: A dataclass, TypedDict or Struct of texts, numbers, booleans, dates, and choices
                (Literal, Enum, lists of them; see `titles`); or a flat JSON Schema, which is sent
                as it is.
            key: Name for the question, where the client is to see one.
            timeout: Seconds to wait where a request is sent; `None` for no limit.

        Returns:
            `Accepted` with the content as an instance of the type (a dict for a schema),
            `Declined` or `Cancelled`.

        Raises:
            TypeError: The type can be no form.
            MissingCapabilityError: The client did not declare forms; nothing was sent.
            LocalProtocolError: The revision has no such form, or nobody can be asked here.
            RemoteError: The client refused.
            RemoteProtocolError: The content does not fit the form.
            RequestTimeoutError: No answer in time.

        Source: client/elicitation.
        """
        from . import elicitation  # of use to few tools, as is what follows

        fields = elicitation.form_of(form)
        question = elicitation.form_question(message, fields, self.exchange)
        wire = await self.dialogue.ask(question, key, timeout)
        return elicitation.answer_of(wire, fields.content)

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
        """Have the client's user go to a web page, for what must not pass through the client.

        Whoever accepts agrees to go there, and may not have done yet what the page is for: see
        for yourself, and ask again if not. Where ids exist, `Server.elicitation_complete` tells
        the client when it is done.

        Args:
            message: Why.
            url: The page. It holds no secret, and is the same each time (see `once`).
            elicitation_id: Id in revisions that have one; made if not given.
            schemes: Schemes that the address may have; most clients open http and https alone.
            key: Name for the question, where the client is to see one.
            timeout: Seconds to wait where a request is sent; `None` for no limit.

        Raises:
            ValueError: Not a URL of such a scheme, or the id is in use.
            MissingCapabilityError: The client did not declare URLs; nothing was sent.
            LocalProtocolError: Nobody can be asked here.
            RemoteError: The client refused.
            RequestTimeoutError: No answer in time.

        Source: client/elicitation#url-mode-elicitation-requests.
        """
        from . import elicitation

        known = self._means.elicitations
        question = elicitation.url_question(
            message, url, elicitation_id, self.exchange, known, schemes
        )
        wire = await self.dialogue.ask(question, key, timeout)
        return elicitation.answer_of(wire, lambda _: None)

    async def sample(
        self,
        messages: str | Sequence[Said],
        *,
        max_tokens: int,
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
        """Have the client's model say something.

        Args:
            messages: The conversation so far, oldest first; text alone is one message of a user.
                What `sample` returned may stand in it, and results of tools after that.
            max_tokens: Most tokens to generate.
            system_prompt: Instructions; the client may change them.
            temperature: Randomness, on the scale of the model's provider.
            stop_sequences: Texts at which it stops.
            model_preferences: Which model would suit.
            include_context: Whose context to add.
            tools: Tools that the model may use, as wire objects or typed ones: name, description,
                inputSchema. They need not be this server's.
            tool_choice: Whether it has to use one.
            metadata: Parameters for the model's provider.
            key: Name for the question, where the client is to see one.
            timeout: Seconds to wait where a request is sent; `None` for no limit.

        Raises:
            MissingCapabilityError: The client did not declare sampling, tools in it or context;
                nothing was sent.
            LocalProtocolError: The revision can't carry it, or the messages break its rules.
            RemoteError: The client refused.
            RequestTimeoutError: No answer in time.

        Source: client/sampling.
        """
        from . import sampling

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
        question = sampling.sampling_question(messages, self.exchange, options)
        return sampling.sampled_of(await self.dialogue.ask(question, key, timeout))

    async def list_roots(
        self, *, key: str | None = None, timeout: float | None = None
    ) -> list[Root]:
        """Where the client wants the server to work.

        Args:
            key: Name for the question, where the client is to see one.
            timeout: Seconds to wait where a request is sent; `None` for no limit.

        Raises:
            MissingCapabilityError: The client did not declare roots; nothing was sent.
            LocalProtocolError: Nobody can be asked here.
            RemoteError: The client refused.
            RequestTimeoutError: No answer in time.

        Source: client/roots.
        """
        from . import roots

        return roots.roots_of(await self.dialogue.ask(roots.QUESTION, key, timeout))

    @overload
    async def ask_all(
        self, first: Awaitable[_T1], second: Awaitable[_T2], /
    ) -> tuple[_T1, _T2]: ...

    @overload
    async def ask_all(
        self, first: Awaitable[_T1], second: Awaitable[_T2], third: Awaitable[_T3], /
    ) -> tuple[_T1, _T2, _T3]: ...

    @overload
    async def ask_all(self, *asks: Awaitable[_T]) -> tuple[_T, ...]: ...

    async def ask_all(self, *asks: Awaitable[Any]) -> tuple[Any, ...]:
        """Ask several things at once, in one round where there are rounds.

            name, roots = await ctx.ask_all(ctx.elicit("Who?", Name), ctx.list_roots())

        Args:
            asks: Calls of this context's coroutines, or coroutines that make some.

        Raises:
            Exception: What the first of them to fail raised; the others are cancelled.
        """
        from .multi_round_trip import all_of

        return tuple(await all_of(asks))

    @overload
    async def once(self, key: str, function: Callable[[], Awaitable[_T]]) -> _T: ...

    @overload
    async def once(self, key: str, function: Callable[[], _T]) -> _T: ...

    async def once(self, key: str, function: Callable[[], Any]) -> Any:
        """What a function returned when this request first got here, however often it runs.

            token = await ctx.once("token", lambda: secrets.token_urlsafe(16))

        Args:
            key: Name for the value in this request.
            function: Gives a JSON value. The client can read it.

        Raises:
            TypeError: No JSON value.
        """
        return await self.dialogue.once(key, function)

    def url_required(self, error: URLElicitationRequiredError) -> dict[str, Any]:
        """The result for a handler that raised this error; see `elicitation.required`."""
        from . import elicitation

        known = self._means.elicitations
        return elicitation.required(error, self.exchange, self.dialogue, known)
