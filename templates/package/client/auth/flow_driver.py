"""Runs flows: HTTP requests, records in the store, and interaction with the user."""

from __future__ import annotations

from contextlib import AsyncExitStack
from inspect import isawaitable
from typing import Any, TypeVar

import anyio

from ...auth.steps import (
    Call,
    Fetch,
    Flow,
    Load,
    Pause,
    PrepareRedirect,
    Save,
    ShowCode,
    Step,
    Visit,
)
from ...errors import AuthorizationError
from .auth_fetcher import AuthFetcher
from .interactions import Device, Interaction, UserAgent
from .stores import Store

Result = TypeVar("Result")


class FlowDriver:
    """Runs flows, one at a time.

    Args:
        fetcher: Makes HTTP requests.
        store: Stores records.
        interaction: The interaction with the user; `None` if there is no user.
    """

    def __init__(
        self, fetcher: AuthFetcher, store: Store, interaction: Interaction | None = None
    ) -> None:
        self._fetcher = fetcher
        self._store = store
        self._interaction = interaction

    async def run(self, flow: Flow[Result]) -> Result:
        """Run a flow to its result.

        Raises:
            McpError: The flow or one of its steps failed.
        """
        async with AsyncExitStack() as stack:
            answer: Any = None
            agent: UserAgent | None = None
            try:
                while True:
                    step = flow.send(answer)
                    if isinstance(step, PrepareRedirect):
                        agent = await stack.enter_async_context(self._required_interaction().open())
                        answer = agent.redirect_uri
                    else:
                        answer = await self._answer(step, agent)
            except StopIteration as end:
                result: Result = end.value
                return result
            finally:
                flow.close()
        raise AssertionError("the stack swallows no exception")

    def _required_interaction(self) -> Interaction:
        if self._interaction is None:
            raise AuthorizationError("the flow requires a user, and no interaction is configured")
        return self._interaction

    async def _answer(self, step: Step, agent: UserAgent | None) -> Any:
        match step:
            case Fetch():
                return await self._fetcher.fetch(step)
            case Load(key):
                return await self._store.load(key)
            case Save(key, record):
                return await self._store.save(key, record)
            case Call(function, arguments):
                value = function(*arguments)
                return await value if isawaitable(value) else value
            case Pause(seconds):
                return await anyio.sleep(seconds)
            case ShowCode(code) if isinstance(self._interaction, Device):
                return await self._interaction.show(code)
            case Visit(url) if agent is not None:
                return await agent.visit(url)
            case _:
                raise AssertionError("a flow yields only steps that fit its interaction")
