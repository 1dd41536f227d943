"""Methods of clients that give their tools to a model, and make the calls that it asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..runtime.pending_requests import OnProgress

if TYPE_CHECKING:
    from .host import DeclaredTools, ModelApi, ModelTools


class ModelCalls:
    """The methods; `host` has what they do."""

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
        """The server's tools as a model's API takes them in `tools`.

        Args:
            api: `openai` (Responses), `openai-chat` (Chat Completions), `anthropic` (Messages) or
                `gemini` (generateContent).
            strict: Whether schemas are reduced to those that the API holds a model to: strict mode
                of OpenAI and Anthropic, the `parameters` of Gemini. A rule that is lost goes into a
                description. A tool whose schema can't be reduced is declared as without `strict`.
            defer: Whether the model sees a search for tools, and then those that it finds: `openai`
                and `anthropic` have one.
            timeout: Seconds for each page of the list; `None` for no limit.

        Returns:
            JSON objects, with `notes` on what is lost. Names that an API does not accept are
            altered; `call_from` finds the tool.

        Raises:
            ValueError: The API is none of these, or has no search for tools.
            RemoteError: The server answered with an error.
            RequestTimeoutError: No response in time.
        """
        return await self._functions().declared(api, strict, defer, timeout)

    async def call_from(
        self,
        tool_call: object,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> Any:
        """Run the tool that a model asks for, and return the result as the model's API takes it.

        A failed call gives a result too, which tells the model of the error.

        Args:
            tool_call: The call, as JSON data or as an object of the provider's library: a
                `function_call` (OpenAI, Responses), a tool call of type `function` (OpenAI, Chat
                Completions), a `tool_use` block (Anthropic) or a `functionCall` (Gemini).
            meta: Members to add to `_meta`.
            timeout: Seconds without response or progress; `None` for no limit.
            on_progress: Called with each report of progress.

        Returns:
            A JSON object: a `function_call_output`, a message of role `tool`, a `tool_result` block
            or a part with a `functionResponse`. Content that the API does not accept is named in a
            text.

        Raises:
            TypeError: The call has none of these forms.
        """
        return await self._functions().run(tool_call, meta, timeout, on_progress)

    def _functions(self) -> ModelTools:
        """The tools as functions of models."""
        if self._model_tools is None:
            from .host import ModelTools

            self._model_tools = ModelTools(self._requests)
        return self._model_tools
