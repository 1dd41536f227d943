"""Dependencies of registered functions, as users declare and test them."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager, asynccontextmanager, closing, contextmanager
from typing import Annotated, Any

import anyio
import pytest

from kit.wire import ALL
from mcpgen_runtime import Context, Depends, Server, ToolError
from mcpgen_runtime.testing import connected

pytestmark = pytest.mark.anyio

NEWEST = ALL[-1]
EVENTS: list[str] = []


class Db:
    """A database that records what becomes of it."""

    def __init__(self, name: str) -> None:
        self.name = name


def plain() -> Db:
    return Db("plain")


async def coroutine() -> Db:
    return Db("coroutine")


def generator() -> Generator[Db]:
    EVENTS.append("open")
    yield Db("generator")
    EVENTS.append("close")


async def async_generator() -> AsyncGenerator[Db]:
    EVENTS.append("open")
    yield Db("async_generator")
    EVENTS.append("close")


@contextmanager
def manager() -> Generator[Db]:
    yield from generator()


@asynccontextmanager
async def async_manager() -> AsyncGenerator[Db]:
    EVENTS.append("open")
    yield Db("async_manager")
    EVENTS.append("close")


def annotated_manager() -> AbstractContextManager[Db]:
    return manager()


class Connection(Db):
    def __init__(self) -> None:
        super().__init__("class")

    async def __aenter__(self) -> Connection:
        EVENTS.append("open")
        return self

    async def __aexit__(self, *error: object) -> None:
        EVENTS.append("close")


OPENED = (generator, async_generator, manager, async_manager, annotated_manager, Connection)


@pytest.fixture(autouse=True)
def no_events() -> None:
    EVENTS.clear()


async def text_of(server: Server, tool: str, **arguments: Any) -> str:
    async with connected(server, revision=NEWEST) as pair:
        result = await pair.client.call_tool(tool, arguments)
    text: str = result.content[0].text
    return text


@pytest.mark.parametrize("provider", [plain, coroutine, *OPENED])
async def test_each_provider_form_gives_its_value_and_is_closed_at_end(
    provider: Callable[..., Any],
) -> None:
    server = Server("forms")

    @server.tool()
    async def use(city: str, db: Annotated[Db, Depends(provider)]) -> str:
        EVENTS.append("use")
        return f"{city} {db.name}"

    expected = ("open", "use", "close") if provider in OPENED else ("use",)
    text = await text_of(server, "use", city="Oslo")
    assert text.startswith("Oslo ")
    assert tuple(EVENTS) == expected


async def tenant(ctx: Context) -> str:
    EVENTS.append("tenant")
    return f"tenant of {ctx.revision}"


async def open_db(tenant: Annotated[str, Depends(tenant)], size: int = 3) -> AsyncGenerator[Db]:
    EVENTS.append("open")
    try:
        yield Db(f"{tenant}, {size}")
    except RuntimeError as error:
        EVENTS.append(f"rollback for {error}")
        raise
    finally:
        EVENTS.append("close")


@pytest.mark.parametrize("revision", [ALL[0], NEWEST])
async def test_dependencies_are_no_part_of_what_a_client_sees(revision: str) -> None:
    server = Server("hidden")

    @server.tool()
    async def count(city: str, db: Annotated[Db, Depends(open_db)]) -> int:
        return 1

    @server.prompt()
    def greet(city: str, db: Annotated[Db, Depends(open_db)]) -> str:
        return f"{city} in {db.name}"

    @server.resource("db://all")
    def everything(db: Annotated[Db, Depends(open_db)]) -> str:
        return db.name

    @server.resource("db://{table}")
    def rows(table: str, db: Annotated[Db, Depends(open_db)]) -> str:
        return f"{table} of {db.name}"

    @server.completion(prompt="greet", argument="city")
    async def cities(value: str, db: Annotated[Db, Depends(open_db)]) -> list[str]:
        return [f"{value} of {db.name}"]

    name = f"tenant of {revision}, 3"
    async with connected(server, revision=revision) as pair:
        client: Any = pair.client
        (tool,) = await client.list_tools()
        assert list(tool.input_schema["properties"]) == ["city"]
        (prompt,) = await client.list_prompts()
        assert [argument.name for argument in prompt.arguments] == ["city"]
        got = await client.get_prompt("greet", {"city": "Oslo"})
        assert got.messages[0].content.text == f"Oslo in {name}"
        assert (await client.read_resource("db://all")).contents[0].text == name
        assert (await client.read_resource("db://cars")).contents[0].text == f"cars of {name}"
        ref = {"type": "ref/prompt", "name": "greet"}
        completed = await client.complete(ref=ref, argument={"name": "city", "value": "O"})
        assert completed.completion.values == [f"O of {name}"]


async def test_a_provider_runs_once_a_call_and_closes_after_dependents() -> None:
    server = Server("once")

    @server.tool()
    async def use(
        *, db: Annotated[Db, Depends(open_db)], who: Annotated[str, Depends(tenant)]
    ) -> str:
        return who

    async with connected(server, revision=NEWEST) as pair:
        await pair.client.call_tool("use")
        assert EVENTS == ["tenant", "open", "close"]
        await pair.client.call_tool("use")
    assert EVENTS == ["tenant", "open", "close"] * 2


async def test_a_provider_sees_the_error_of_the_function() -> None:
    server = Server("failing", show_errors=True)

    @server.tool()
    async def use(db: Annotated[Db, Depends(open_db)]) -> str:
        raise RuntimeError("no table")

    assert await text_of(server, "use") == "no table"
    assert EVENTS == ["tenant", "open", "rollback for no table", "close"]


async def test_an_error_that_a_provider_suppresses_is_still_the_answer() -> None:
    server = Server("suppressing", show_errors=True)

    @contextmanager
    def forgiving() -> Generator[None]:
        try:
            yield
        except RuntimeError:
            EVENTS.append("suppressed")

    @server.tool()
    async def use(nothing: Annotated[None, Depends(forgiving)]) -> str:
        raise RuntimeError("no table")

    assert await text_of(server, "use") == "no table"
    assert EVENTS == ["suppressed"]


async def test_dependencies_are_closed_when_the_tool_times_out() -> None:
    server = Server("slow")

    @server.tool(timeout=0.05)
    async def use(db: Annotated[Db, Depends(open_db)]) -> str:
        await anyio.sleep_forever()
        return ""

    assert "timed out" in await text_of(server, "use")
    assert EVENTS == ["tenant", "open", "close"]


async def test_a_test_can_override_a_dependency_also_a_nested_one() -> None:
    server = Server("shop")

    @server.tool()
    async def use(db: Annotated[Db, Depends(open_db)]) -> str:
        return db.name

    def fake_tenant() -> str:
        return "nobody"

    def fake_db(who: Annotated[str, Depends(tenant)]) -> Db:
        return Db(f"fake for {who}")

    with server.override(tenant, fake_tenant):
        assert await text_of(server, "use") == "nobody, 3"
        with server.override(open_db, fake_db):
            assert await text_of(server, "use") == "fake for nobody"
        assert await text_of(server, "use") == "nobody, 3"
    assert await text_of(server, "use") == f"tenant of {NEWEST}, 3"


async def test_a_dependency_of_a_completer_can_be_overridden() -> None:
    server = Server("shop")

    @server.prompt()
    def greet(name: str) -> str:
        return f"hello {name}"

    @server.completion(prompt="greet", argument="name")
    async def names(value: str, db: Annotated[Db, Depends(plain)]) -> list[str]:
        return [value + db.name]

    with server.override(plain, lambda: Db("fake")):
        async with connected(server, revision=NEWEST) as pair:
            prompt = {"type": "ref/prompt", "name": "greet"}
            result: Any = await pair.client.complete({"name": "name", "value": "a"}, prompt)
            assert result.completion.values == ["afake"]


@pytest.mark.parametrize("revision", ALL)
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


def test_overriding_what_nothing_depends_on_is_an_error() -> None:
    server = Server("shop")
    replaced = server.override(plain, coroutine)
    with pytest.raises(LookupError, match="nothing that is registered depends on 'plain'"):
        replaced.__enter__()


async def test_a_generator_closes_a_connection_of_the_standard_library() -> None:
    server = Server("sql")

    async def open_sqlite() -> AsyncGenerator[sqlite3.Connection]:
        with closing(sqlite3.connect(":memory:")) as connection:
            yield connection

    @server.tool()
    async def answer(db: Annotated[sqlite3.Connection, Depends(open_sqlite)]) -> int:
        number: int = db.execute("select 6 * 7").fetchone()[0]
        return number

    assert await text_of(server, "answer") == "42"


class Closing:
    """A context manager that records how it is left."""

    def __enter__(self) -> Closing:
        EVENTS.append("open")
        return self

    def __exit__(self, kind: Any, error: Any, frames: Any) -> None:
        EVENTS.append(str(error))


class OuterClosing(Closing):
    """A context manager around another one."""


async def test_the_error_of_a_tool_passes_its_dependencies() -> None:
    server = Server("failing")

    @server.tool
    async def fail(
        outer: Annotated[OuterClosing, Depends(OuterClosing)],
        closing: Annotated[Closing, Depends(Closing)],
    ) -> str:
        raise ToolError(f"failed {type(closing).__name__}")

    EVENTS.clear()
    async with connected(server, revision=NEWEST) as pair:
        result: Any = await pair.client.call_tool("fail")
    assert (result.is_error, result.content[0].text) == (True, "failed Closing")
    assert EVENTS == ["open", "open", "failed Closing", "failed Closing"]


async def test_a_dependency_gets_no_values_for_further_arguments() -> None:
    server = Server("open")

    def provide(*args: int, **more: int) -> Db:
        return Db(f"{args} {more}")

    @server.tool
    async def name(db: Db | None = Depends(provide)) -> str:  # noqa: B008 - as users write it
        return db.name if db else ""

    assert await text_of(server, "name") == "() {}"


def with_contexts(ctx: Context, other: Context) -> Db:
    raise NotImplementedError


def of_two_contexts(db: Annotated[Db, Depends(with_contexts)]) -> str:
    raise NotImplementedError


def test_a_dependency_is_a_function() -> None:
    provide: Any = 5
    with pytest.raises(TypeError, match="Depends: expected a function, got 5"):
        Depends(provide)


def with_argument(city: str) -> Db:
    return Db(city)


def in_a_union(db: Annotated[Db, Depends(plain)] | None) -> str:
    raise NotImplementedError


def two(db: Annotated[Db, Depends(plain), Depends(coroutine)]) -> str:
    raise NotImplementedError


def with_default(db: Annotated[Db | None, Depends(plain)] = None) -> str:
    raise NotImplementedError


def not_provided(db: Annotated[Db, Depends(with_argument)]) -> str:
    raise NotImplementedError


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (in_a_union, r"parameter 'db': expected Annotated\[<type> \| None, Depends"),
        (two, "parameter 'db': expected one Depends, got 2"),
        (of_two_contexts, "expected one Context parameter, got ctx, other"),
        (with_default, "replaces its default value; place the parameter after a *"),
        (not_provided, "dependency 'with_argument': parameter 'city': expected a Context"),
    ],
)
def test_an_impossible_dependency_names_the_alternative(
    function: Callable[..., Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        Server("wrong").tool("wrong")(function)


def test_a_dependency_on_itself_is_refused() -> None:
    def provide(db: Any) -> Db:
        raise NotImplementedError

    provide.__annotations__["db"] = Annotated[Db, Depends(provide)]
    with pytest.raises(TypeError, match="dependency 'provide' depends on itself"):
        Server("wrong").tool()(provide)
