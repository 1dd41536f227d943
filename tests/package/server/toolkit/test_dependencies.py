"""Dependencies of registered functions, as users declare and test them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from typing import Annotated, Any

import anyio
import pytest

from kit.live import server_with
from kit.wire import ALL, every
from mcpgen_runtime import Context, Depends, Server, ToolError, connect
from mcpgen_runtime.testing import connected

NEWEST = ALL[-1]
events: list[str] = []


class Db:
    """A database of some name."""

    def __init__(self, name: str) -> None:
        self.name = name


def plain(*args: int, **more: int) -> Db:  # which get no values
    return Db(f"plain{args or more or ''}")


async def tenant(ctx: Context) -> str:
    events.append("tenant")
    return f"tenant of {ctx.revision}"


async def open_db(tenant: Annotated[str, Depends(tenant)], size: int = 3) -> AsyncGenerator[Db]:
    events.append("open")
    try:
        yield Db(f"{tenant}, {size}")
    except RuntimeError as error:
        events.append(f"rollback for {error}")
        raise
    finally:
        events.append("close")


OpenDb = Annotated[Db, Depends(open_db)]
REF = {"type": "ref/prompt", "name": "greet"}


@pytest.fixture(autouse=True)
def no_events() -> None:
    events.clear()


async def text_of(server: Server, tool: str, **arguments: Any) -> str:
    async with connected(server, revision=NEWEST) as pair:
        result = await pair.client.call_tool(tool, arguments)
    text: str = result.content[0].text
    return text


class Connection(Db):
    """A database that is an asynchronous context manager."""

    async def __aenter__(self) -> Connection:
        events.append("open")
        return self

    async def __aexit__(self, *error: object) -> None:
        events.append("close")


def provider_forms() -> dict[str, tuple[Callable[..., Any], bool]]:
    """Providers by their form, each with whether it is opened and closed."""

    async def coroutine() -> Db:
        return Db("coroutine")

    def generator() -> Generator[Db]:
        events.append("open")
        yield Db("generator")
        events.append("close")

    async def async_generator() -> AsyncGenerator[Db]:
        async with Connection("async generator") as db:
            yield db

    manager = contextmanager(generator)

    def annotated_manager() -> AbstractContextManager[Db]:
        return manager()

    class Opened(Connection):
        def __init__(self) -> None:
            super().__init__("class")

    return {
        "function": (plain, False),
        "coroutine": (coroutine, False),
        "generator": (generator, True),
        "async generator": (async_generator, True),
        "context manager": (manager, True),
        "async context manager": (asynccontextmanager(async_generator), True),
        "function of a context manager": (annotated_manager, True),
        "class of an async context manager": (Opened, True),
    }


@pytest.mark.parametrize("form", provider_forms())
async def test_each_provider_form_gives_its_value_and_is_closed_at_end(form: str) -> None:
    provider, is_opened = provider_forms()[form]
    server = Server("forms")

    @server.tool()
    async def use(city: str, db: Annotated[Db, Depends(provider)]) -> str:
        events.append("use")
        return f"{city} {db.name}"

    assert (await text_of(server, "use", city="Oslo")).startswith("Oslo ")
    assert events == (["open", "use", "close"] if is_opened else ["use"])


@pytest.mark.parametrize("revision", [ALL[0], NEWEST])
async def test_dependencies_are_no_part_of_what_a_client_sees(revision: str) -> None:
    server = Server("hidden")

    @server.tool()
    async def count(city: str, db: OpenDb) -> int:
        return 1

    @server.prompt()
    def greet(city: str, db: OpenDb) -> str:
        return f"{city} in {db.name}"

    @server.completion(prompt="greet", argument="city")
    async def cities(value: str, db: OpenDb) -> list[str]:
        return [f"{value} of {db.name}"]

    async with connect(server, revision=revision) as client:
        (tool,) = await client.list_tools()
        assert list(tool.input_schema["properties"]) == ["city"]
        (prompt,) = await client.list_prompts()
        assert [argument.name for argument in prompt.arguments] == ["city"]
        asked = {"name": "city", "value": "O"}
        completed = await client.complete(ref=REF, argument=asked)
        assert completed.completion.values == [f"O of tenant of {revision}, 3"]
        with server.override(open_db, lambda: Db("fake")):
            completed = await client.complete(ref=REF, argument=asked)
        assert completed.completion.values == ["O of fake"]


async def test_a_provider_runs_once_a_call_and_closes_after_dependents() -> None:
    async def use(*, db: OpenDb, who: Annotated[str, Depends(tenant)]) -> str:
        return who

    async with connected(server_with(use), revision=NEWEST) as pair:
        await pair.client.call_tool("use")
        assert events == ["tenant", "open", "close"]
        await pair.client.call_tool("use")
    assert events == ["tenant", "open", "close"] * 2


async def test_providers_see_how_a_function_ends() -> None:
    server = Server("ends", show_errors=True)

    @contextmanager
    def forgiving() -> Generator[None]:
        try:
            yield
        except RuntimeError:
            events.append("suppressed")

    class Closing:
        def __enter__(self) -> Closing:
            events.append("enter")
            return self

        def __exit__(self, kind: Any, error: Any, frames: Any) -> None:
            events.append(f"leave for {error}")

    @server.tool()
    async def fails(db: OpenDb) -> str:
        raise RuntimeError("no table")

    @server.tool()
    async def is_forgiven(nothing: Annotated[None, Depends(forgiving)]) -> str:
        raise RuntimeError("no table")

    @server.tool(timeout=0.05)
    async def times_out(db: OpenDb) -> None:
        await anyio.sleep_forever()

    @server.tool()
    async def refuses(closing: Annotated[Closing, Depends(Closing)]) -> str:
        raise ToolError(f"refused by {type(closing).__name__}")

    for tool, text, expected in (
        ("fails", "no table", ["tenant", "open", "rollback for no table", "close"]),
        ("is_forgiven", "no table", ["suppressed"]),  # the error is the answer all the same
        ("times_out", "tool 'times_out' timed out after 0.05 seconds", ["tenant", "open", "close"]),
        ("refuses", "refused by Closing", ["enter", "leave for refused by Closing"]),
    ):
        events.clear()
        assert text in await text_of(server, tool)
        assert events == expected


async def test_a_test_can_override_a_dependency_also_a_nested_one() -> None:
    async def use(db: OpenDb) -> str:
        return db.name

    def fake_db(who: Annotated[str, Depends(tenant)]) -> Db:
        return Db(f"fake for {who}")

    server = server_with(use)
    with server.override(tenant, lambda: "nobody"):
        assert await text_of(server, "use") == "nobody, 3"
        with server.override(open_db, fake_db):
            assert await text_of(server, "use") == "fake for nobody"
        assert await text_of(server, "use") == "nobody, 3"
    assert await text_of(server, "use") == f"tenant of {NEWEST}, 3"
    unused = server.override(plain, plain)
    with pytest.raises(LookupError, match="nothing that is registered depends on 'plain'"):
        unused.__enter__()


@every
async def test_a_provider_reads_arguments_of_the_call_converted(revision: str) -> None:
    server = Server("library")

    def shelf(row: int, ctx: Context, step: int = 1) -> str:  # has a default: it stays that
        return f"{row + 1} {type(row).__name__} {step}"

    async def room(row: int, shelf: Annotated[str, Depends(shelf)]) -> str:
        return f"{row} in {shelf}"

    @server.tool()
    async def find(
        row: int, room: Annotated[str, Depends(room)], step: int = 7, title: str = "any"
    ) -> str:
        return f"{title}: {room}, {step}"

    @server.resource("book://{row}")
    async def book(row: int, room: Annotated[str, Depends(room)]) -> str:
        return room

    @server.prompt()
    async def ask(row: int, room: Annotated[str, Depends(room)]) -> str:
        return room

    async with connected(server, revision=revision) as pair:
        client = pair.client
        result = await client.call_tool("find", {"row": "4", "step": 8})
        assert result.content[0].text == "any: 4 in 5 int 1, 8"
        assert (await client.read_resource("book://3")).contents[0].text == "3 in 4 int 1"
        assert (await client.get_prompt("ask", {"row": "2"})).messages[0].content.text == (
            "2 in 3 int 1"
        )
        with server.override(shelf, lambda row: f"test {row}"):
            result = await client.call_tool("find", {"row": 4})
        assert result.content[0].text == "any: 4 in test 4, 7"
    replaced = server.override(shelf, lambda floor: floor)
    with pytest.raises(TypeError, match=r"parameter 'floor': expected a Context.*arguments row"):
        replaced.__enter__()


def test_an_impossible_dependency_names_the_alternative() -> None:
    def with_contexts(ctx: Context, other: Context) -> Db:
        raise NotImplementedError

    def with_argument(city: str) -> Db:
        return Db(city)

    def of_two_contexts(db: Annotated[Db, Depends(with_contexts)]) -> None: ...

    def in_a_union(db: Annotated[Db, Depends(plain)] | None) -> None: ...

    def two(db: Annotated[Db, Depends(plain), Depends(with_argument)]) -> None: ...

    def with_default(db: Annotated[Db | None, Depends(plain)] = None) -> None: ...

    def not_provided(db: Annotated[Db, Depends(with_argument)]) -> None: ...

    def on_itself(db: Any) -> Db:
        raise NotImplementedError

    on_itself.__annotations__["db"] = Annotated[Db, Depends(on_itself)]
    for function, message in (
        (in_a_union, r"parameter 'db': expected Annotated\[<type> \| None, Depends"),
        (two, "parameter 'db': expected one Depends, got 2"),
        (of_two_contexts, "expected one Context parameter, got ctx, other"),
        (with_default, "replaces its default value; place the parameter after a *"),
        (not_provided, "dependency 'with_argument': parameter 'city': expected a Context"),
        (on_itself, "dependency 'on_itself' depends on itself"),
    ):
        with pytest.raises(TypeError, match=message):
            Server("wrong").tool("wrong")(function)
    provide: Any = 5
    with pytest.raises(TypeError, match="Depends: expected a function, got 5"):
        Depends(provide)
