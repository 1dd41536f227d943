"""Handlers with a wrong name or other parameters are an error before a session is opened."""

from __future__ import annotations

from functools import partial, wraps
from importlib import import_module
from typing import Any, ClassVar

import pytest

from kit.wire import ALL, every
from mcpgen_runtime import (
    REVISIONS,
    ClientHandlers,
    Server,
    SyncClientHandlers,
    connect,
    connect_sync,
)

pytestmark = pytest.mark.on_asyncio

ANSWER = {"action": "decline"}


def prepare_session(handlers: Any, revision: str | None = None) -> Any:
    """A session that is ready to be opened."""
    return connect(Server("s"), revision=revision, handlers=handlers)


def guest_with(name: str, function: Any, base: type = ClientHandlers) -> Any:
    """An object of a class `Guest` with one attribute."""
    return type("Guest", (base,), {name: function})()


async def usual(self: Any, params: Any, ctx: Any) -> Any:
    return ANSWER


MISNAMED = {
    "elicit": (
        *("elicitation", "on_elicitation", "elicitation_callback", "elicitation_handler"),
        *("elicitation_create", "handle_elicit", "ellicit"),
    ),
    "create_message": ("sampling", "sampling_callback", "createMessage", "create_mesage"),
    "list_roots": ("roots", "listRoots", "list_root", "list_roots_callback"),
    "logging_message": ("message", "message_handler"),
    "tool_list_changed": ("tools_list_changed",),
    "resource_updated": ("resources_updated",),
}


@pytest.mark.parametrize("base", [ClientHandlers, SyncClientHandlers])
@pytest.mark.parametrize(
    ("name", "right"), [(name, right) for right, names in MISNAMED.items() for name in names]
)
def test_a_misnamed_handler_is_an_error_that_names_the_right_one(
    name: str, right: str, base: type
) -> None:
    with pytest.raises(TypeError, match=rf"^handlers: Guest\.{name} is no handler: write {right}"):
        prepare_session(guest_with(name, usual, base))


@pytest.mark.parametrize("name", ["cancel", "list", "create", "answer"])
def test_a_helper_whose_name_is_a_part_of_a_capability_is_none(name: str) -> None:
    handlers: type = import_module("mcpgen_runtime.r2025_11_25.client").ClientHandlers
    opening = prepare_session(guest_with(name, usual, handlers), "2025-11-25")
    assert opening is not None


@pytest.mark.parametrize(
    "function",
    [
        lambda self, params: ANSWER,
        lambda self, params, ctx, more: ANSWER,
        lambda self, *, params, ctx: ANSWER,
    ],
    ids=["no context", "a third one", "by name"],
)
def test_other_parameters_are_an_error(function: Any) -> None:
    wrong = guest_with("elicit", function)
    group = {"mcpServers": {"a": Server("a"), "b": Server("b")}}
    text = r"^handlers: Guest\.elicit: expected a method with the parameters \(params, ctx\), got"
    for target in (Server("s"), group):
        for opening in (connect, connect_sync):
            with pytest.raises(TypeError, match=text):
                opening(target, handlers=wrong)
    with pytest.raises(TypeError, match=r"write elicit\(params, ctx\)"):
        prepare_session(guest_with("elicitation", lambda self, message: ANSWER))
    for handlers in ({"elicit": usual}, "elicit", usual, 1):
        with pytest.raises(TypeError, match="handlers: expected an object of a class that is"):
            prepare_session(handlers)


def log_calls(function: Any) -> Any:
    """A decorator that says nothing of parameters."""

    @wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        return await function(*args, **kwargs)

    return wrapper


def without_context(function: Any) -> Any:
    """A decorator that adds a parameter."""

    @wraps(function)
    async def wrapper(self: Any, params: Any, ctx: Any) -> Any:
        return await function(self, params)

    return wrapper


class Answering:
    """A callable object."""

    async def __call__(self, params: Any, ctx: Any) -> Any:
        return ANSWER


class Everything(ClientHandlers):
    """Handlers and other attributes, in the ways that users write them."""

    elicitation: ClassVar[dict[str, Any]] = {}
    roots = ("file:///a",)
    progress = 0  # type: ignore[assignment]  # data under the name of a handler
    cancelled = False  # type: ignore[assignment]  # data, as above
    create_message = staticmethod(partial(usual, "a"))
    logging_message = Answering()

    class Sampling:
        """A class of the user."""

    def __init__(self) -> None:
        self.sampling = print
        self.elicited = lambda a, b: None

    @without_context
    async def elicit(self, params: Any) -> Any:
        return ANSWER

    @log_calls
    async def list_roots(self, params: Any, ctx: Any) -> Any:
        return {"roots": []}

    async def tool_list_changed(self, params: Any, ctx: Any, *more: Any, again: int = 1) -> None:
        return None

    @staticmethod
    async def prompt_list_changed(params: Any, ctx: Any = None) -> None:
        return None

    @classmethod
    async def resource_updated(cls, *args: Any) -> None:
        return None

    async def _elicitation(self, params: Any, ctx: Any) -> Any:
        return ANSWER

    async def ask_user(self, params: Any, ctx: Any) -> Any:
        return ANSWER

    def sampling_model(self, params: Any, ctx: Any) -> str:
        return "m"

    @property
    def message(self) -> str:
        raise AssertionError("properties are not evaluated")


class Beside(ClientHandlers):
    """Helpers with the name of a capability, beside its handler."""

    async def elicit(self, params: Any, ctx: Any) -> Any:
        return await self.elicitation(params, ctx)

    async def elicitation(self, params: Any, ctx: Any) -> Any:
        return ANSWER


class Own:
    """An object that chooses its own handlers."""

    url_schemes = ("https",)

    def mcp_handler(self, method: Any) -> Any:
        return None


@pytest.mark.parametrize("revision", [None, *ALL])
@pytest.mark.parametrize("handlers", [Everything(), Beside(), Own(), ClientHandlers()])
async def test_valid_handlers_are_never_refused(handlers: Any, revision: str | None) -> None:
    async with prepare_session(handlers, revision) as client:
        assert client.revision == (revision or ALL[-1])


@every
def test_data_under_the_name_of_a_handler_is_no_handler(revision: str) -> None:
    rows = REVISIONS[revision].server_notifications
    assert Everything().mcp_handler(rows["notifications/progress"]) is None
    assert Everything().mcp_handler(rows["notifications/tools/list_changed"]) is not None
