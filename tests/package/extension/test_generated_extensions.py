"""Generated extensions at work: typed calls and handlers, in force where both declare them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from mcpgen import names, schema
from mcpgen.names import Library
from package.extension.task_work import importable_package

pytestmark = [pytest.mark.costly, pytest.mark.on_asyncio]

PAINT = Path(__file__).parents[2] / "generator" / "extensions" / "paint.json"
REVISIONS = tuple(row.name for row in schema.revisions())
STATELESS = REVISIONS[-1]
PACKAGE = "painting_package"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory, models: Library) -> Iterator[None]:
    """The package with the extension com.example/paint beside each revision."""
    root = tmp_path_factory.mktemp("packages")
    with importable_package(root, PACKAGE, REVISIONS, [str(PAINT)], models):
        yield


@pytest.fixture(params=REVISIONS)
def pkg(package: None, request: pytest.FixtureRequest) -> Any:
    """The modules of the extension beside a revision, and `connect` to a server in it."""
    folder = names.folder(request.param)
    root = importlib.import_module(PACKAGE)

    def module(name: str) -> ModuleType:
        return importlib.import_module(f"{PACKAGE}.{folder}.{name}")

    return SimpleNamespace(
        root=root,
        revision=request.param,
        connect=partial(root.connect, revision=request.param),
        paint=module("paint"),
        client=module("paint.client"),
        sync=module("paint.client_sync"),
        server=module("paint.server"),
        core=module("server"),
        declared={"extensions": {module("paint").IDENTIFIER: {}}},
    )


def painter(pkg: Any) -> Any:
    """A server with the extension, which draws and tells of it."""

    class Painter(pkg.server.ServerHandlers):  # type: ignore[misc]  # made while the test runs
        async def draw(self, params: Any, ctx: Any) -> Any:
            await pkg.server.ServerSession(ctx).canvas_changed(canvas=params.canvas)
            return pkg.paint.DrawResult(count=sum(stroke.width for stroke in params.strokes))

    server = pkg.root.Server("painter", handlers=[Painter()])
    server.tool("plain")(lambda: "text")
    return server


def listener(pkg: Any) -> Any:
    """The handlers of a client; `heard` has the names of the canvases that changed."""

    class Listener(pkg.client.ClientHandlers):  # type: ignore[misc]  # as above
        def __init__(self) -> None:
            self.heard: list[str] = []

        async def canvas_changed(self, params: Any, ctx: Any) -> None:
            self.heard.append(params.canvas)

    return Listener()


async def test_a_client_calls_and_a_server_handles_typed(pkg: Any) -> None:
    handlers = listener(pkg)
    strokes = [pkg.paint.Stroke(color="red", width=2), {"color": "blue", "width": 3}]
    async with pkg.connect(painter(pkg), capabilities=pkg.declared, handlers=handlers) as client:
        result = await client.seen_as(pkg.client.Client).draw(canvas="wall", strokes=strokes)
        assert type(result) is pkg.paint.DrawResult
        assert result.count == 5
        assert getattr(result, "result_type", "complete") == "complete"
        assert handlers.heard == ["wall"]
        assert (await client.call_tool("plain")).content[0].text == "text"


async def test_params_that_do_not_fit_are_refused_before_sending(pkg: Any) -> None:
    async with pkg.connect(painter(pkg), capabilities=pkg.declared) as client:
        with pytest.raises(pkg.root.InvalidParamsError, match="color"):
            drawing = client.seen_as(pkg.client.Client)
            await drawing.draw(canvas="wall", strokes=[{"color": "pink", "width": 1}])
        with pytest.raises(pkg.root.RemoteError) as refused:  # the server does not override it
            await drawing.clear()
        assert refused.value.code == -32601


async def test_a_server_that_lacks_the_extension_is_sent_nothing(pkg: Any) -> None:
    async with pkg.connect(pkg.root.Server("plain"), capabilities=pkg.declared) as client:
        with pytest.raises(
            pkg.root.MissingCapabilityError, match=r"extensions\.com\.example/paint"
        ):
            client.seen_as(pkg.client.Client)
        with pytest.raises(pkg.root.MissingCapabilityError):
            await client.request("com.example/draw", {"canvas": "wall", "strokes": []})


async def test_a_client_that_does_not_declare_the_extension_is_refused(pkg: Any) -> None:
    handlers = listener(pkg)
    async with pkg.connect(painter(pkg), handlers=handlers) as client:
        with pytest.raises(pkg.root.MissingCapabilityError):
            client.seen_as(pkg.client.Client)
        with pytest.raises(pkg.root.RemoteError) as refused:
            await client.request("com.example/draw", {"canvas": "wall", "strokes": []})
        assert refused.value.code == (-32021 if pkg.revision == STATELESS else -32600)
        assert refused.value.data == {"requiredCapabilities": pkg.declared}
        assert handlers.heard == []


async def test_only_clients_with_the_extension_get_its_notifications(pkg: Any) -> None:
    handlers = listener(pkg)

    class Core(pkg.core.ServerHandlers):  # type: ignore[misc]  # as above
        async def list_tools(self, params: Any, ctx: Any) -> Any:
            await pkg.server.ServerSession(ctx).canvas_changed(canvas="wall")
            return {"tools": []}

    server = pkg.root.Server("telling", handlers=[Core()], capabilities=pkg.declared)
    async with pkg.connect(server, handlers=handlers) as client:
        await client.list_tools()
        assert handlers.heard == []
    async with pkg.connect(server, handlers=handlers, capabilities=pkg.declared) as client:
        await client.list_tools()
        assert handlers.heard == ["wall"]


async def test_handlers_of_revision_and_extension_are_one_class(pkg: Any) -> None:
    class Both(pkg.core.ServerHandlers, pkg.server.ServerHandlers):  # type: ignore[misc]  # as above
        async def list_tools(self, params: Any, ctx: Any) -> Any:
            return {"tools": []}

        async def clear(self, params: Any, ctx: Any) -> Any:
            return {}

    server = pkg.root.Server("both", handlers=[Both()])
    async with pkg.connect(server, capabilities=pkg.declared) as client:
        assert await client.list_tools() == []
        await client.seen_as(pkg.client.Client).clear()


def test_a_blocking_client_has_the_calls_too(pkg: Any) -> None:
    with pkg.root.connect_sync(
        painter(pkg), revision=pkg.revision, capabilities=pkg.declared
    ) as client:
        strokes = [{"color": "blue", "width": 4}]
        result = pkg.sync.SyncClient(client).draw(canvas="wall", strokes=strokes)
        assert result.count == 4
    with (
        pkg.root.connect_sync(painter(pkg), revision=pkg.revision) as client,
        pytest.raises(pkg.root.MissingCapabilityError),
    ):
        pkg.sync.SyncClient(client)
