"""Client methods that declare tools to a model, and run the calls that the model requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..runtime.pending_requests import OnProgress

if TYPE_CHECKING:
    from .host import DeclaredTools, ModelApi, ModelTools


class ModelCalls:
    """Adds `tools_for` and `call_from` to a client; implemented in `host`."""

    _requests: Any  # sends the requests of the client
    _model_tools: ModelTools | None = None

    async def tools_for(
        self,
        api: ModelApi,
        *,
        strict: bool = False,
        defer: bool = False,
        timeout: float | None = None,
    ) -> DeclaredTools:
        """The server's tools in the form of a model's API, for its parameter `tools`.

        Args:
            api: `openai` (Responses), `openai-chat` (Chat Completions), `anthropic` (Messages) or
                `gemini` (generateContent).
            strict: Whether schemas are reduced to the subset that the API enforces: strict mode of
                OpenAI and Anthropic, the `parameters` of Gemini. A keyword that is lost is stated
                in a description. A tool whose schema can't be reduced is declared without `strict`.
            defer: Whether the model finds tools by the search tool of the API: `openai` and
                `anthropic` only.
            timeout: Seconds for each page of the list; `None` for no limit.

        Returns:
            JSON objects, with `notes` on differences to the schemas. Names that an API does not
            accept, of tools and of their arguments at any depth, are altered, and `call_from` maps
            them back.

        Raises:
            ValueError: The API is unknown, or has no search for tools.
            RemoteError: The server answered with an error.
            RequestTimeoutError: No response in time.
        """
        return await self._functions().declare_tools(api, strict, defer, timeout)

    async def call_from(
        self,
        tool_call: object,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> Any:
        """Run a call that a model requests, and return the result in the form of the model's API.

        A failed call returns a result too, with the text of the error.

        Args:
            tool_call: The call, as JSON data or as an object of the provider's library: a
                `function_call` (OpenAI, Responses), a tool call of type `function` (OpenAI, Chat
                Completions), a `tool_use` block (Anthropic) or a `functionCall` (Gemini).
            meta: Members to add to `_meta`.
            timeout: Seconds without response or progress; `None` for no limit.
            on_progress: Called with each report of progress.

        Returns:
            A JSON object: a `function_call_output`, a message of role `tool`, a `tool_result` block
            or a part with a `functionResponse`. Content that the API does not accept is replaced by
            a text.

        Raises:
            TypeError: The call has another form.
        """
        return await self._functions().run(tool_call, meta, timeout, on_progress)

    def _functions(self) -> ModelTools:
        """The tools as functions of models, created on first use."""
        if self._model_tools is None:
            from .host import ModelTools

            self._model_tools = ModelTools(self._requests)
        return self._model_tools
