"""Generated extensions at work: typed calls and handlers, in force where both sides declare them.

The packages are made for these tests: one with a small extension of two requests and a
notification, and one with a second extension beside it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from mcpgen import build_request, output, pipeline
from mcpgen.build_request import BuildRequest
from mcpgen.parts import Selection

PAINT = Path(__file__).parents[2] / "generator" / "extensions" / "paint.json"
REVISIONS = ("2025-06-18", "2026-07-28")
HAVING = REVISIONS[1]
PACKAGE = "painting_package"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def pkg(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Any]:
    """The modules of a package with the extension com.example/paint."""
    root = tmp_path_factory.mktemp("packages")
    found = build_request.named_extensions([str(PAINT)])
    sources = build_request.named_sources(REVISIONS)
    chosen = Selection(models=pytestconfig.getoption("--models"))
    request = BuildRequest(PACKAGE, sources, selection=chosen, extensions=found)
    output.write(root / PACKAGE, pipeline.build(request))
    sys.path.insert(0, str(root))

    def module(name: str) -> ModuleType:
        return importlib.import_module(f"{PACKAGE}{name}")

    yield SimpleNamespace(
        root=module(""),
        paint=module(".r2026_07_28.paint"),
        client=module(".r2026_07_28.paint.client"),
        sync=module(".r2026_07_28.paint.client_sync"),
        server=module(".r2026_07_28.paint.server"),
        core=module(".r2026_07_28.server"),
    )
    sys.path.remove(str(root))
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


def declared(pkg: Any) -> dict[str, Any]:
    """The capabilities of a client that declares the extension."""
    return {"extensions": {pkg.paint.IDENTIFIER: {}}}


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
    async with pkg.root.connect(
        painter(pkg), capabilities=declared(pkg), handlers=handlers
    ) as client:
        result = await client.seen_as(pkg.client.Client).draw("wall", strokes)
        assert type(result) is pkg.paint.DrawResult
        assert (result.count, result.result_type) == (5, "complete")
        assert handlers.heard == ["wall"]
        assert (await client.call_tool("plain")).content[0].text == "text"


async def test_params_that_do_not_fit_are_refused_before_anything_is_sent(pkg: Any) -> None:
    async with pkg.root.connect(painter(pkg), capabilities=declared(pkg)) as client:
        with pytest.raises(pkg.root.InvalidParamsError, match="color"):
            await client.seen_as(pkg.client.Client).draw("wall", [{"color": "pink", "width": 1}])


async def test_a_method_that_the_server_does_not_override_is_not_found(pkg: Any) -> None:
    async with pkg.root.connect(painter(pkg), capabilities=declared(pkg)) as client:
        with pytest.raises(pkg.root.RemoteError) as refused:
            await client.seen_as(pkg.client.Client).clear()
        assert refused.value.code == -32601


async def test_a_server_with_handlers_declares_the_extension(pkg: Any) -> None:
    async with pkg.root.connect(painter(pkg)) as client:
        assert client.server_capabilities["extensions"] == {pkg.paint.IDENTIFIER: {}}
    async with pkg.root.connect(pkg.root.Server("plain"), capabilities=declared(pkg)) as client:
        assert "extensions" not in client.server_capabilities


async def test_nothing_is_sent_to_a_server_that_does_not_declare_the_extension(pkg: Any) -> None:
    async with pkg.root.connect(pkg.root.Server("plain"), capabilities=declared(pkg)) as client:
        with pytest.raises(
            pkg.root.MissingCapabilityError, match=r"extensions\.com\.example/paint"
        ):
            client.seen_as(pkg.client.Client)
        with pytest.raises(pkg.root.MissingCapabilityError):
            await client.request("com.example/draw", {"canvas": "wall", "strokes": []})


async def test_a_client_that_does_not_declare_the_extension_is_refused(pkg: Any) -> None:
    handlers = listener(pkg)
    async with pkg.root.connect(painter(pkg), handlers=handlers) as client:
        with pytest.raises(pkg.root.MissingCapabilityError):
            client.seen_as(pkg.client.Client)
        with pytest.raises(pkg.root.RemoteError) as refused:
            await client.request("com.example/draw", {"canvas": "wall", "strokes": []})
        assert refused.value.code == -32021
        required: dict[str, Any] = {"extensions": {pkg.paint.IDENTIFIER: {}}}
        assert refused.value.data == {"requiredCapabilities": required}
        assert handlers.heard == []


async def test_a_notification_goes_only_to_a_client_that_declares_the_extension(pkg: Any) -> None:
    handlers = listener(pkg)

    class Core(pkg.core.ServerHandlers):  # type: ignore[misc]  # as above
        async def list_tools(self, params: Any, ctx: Any) -> Any:
            await pkg.server.ServerSession(ctx).canvas_changed(canvas="wall")
            return {"tools": []}

    server = pkg.root.Server("telling", handlers=[Core()], capabilities=declared(pkg))
    async with pkg.root.connect(server, handlers=handlers) as client:
        await client.list_tools()
        assert handlers.heard == []
    async with pkg.root.connect(server, handlers=handlers, capabilities=declared(pkg)) as client:
        await client.list_tools()
        assert handlers.heard == ["wall"]


async def test_handlers_of_the_revision_and_of_an_extension_are_one_class(pkg: Any) -> None:
    class Both(pkg.core.ServerHandlers, pkg.server.ServerHandlers):  # type: ignore[misc]  # as above
        async def list_tools(self, params: Any, ctx: Any) -> Any:
            return {"tools": []}

        async def clear(self, params: Any, ctx: Any) -> Any:
            return {}

    server = pkg.root.Server("both", handlers=[Both()])
    async with pkg.root.connect(server, capabilities=declared(pkg)) as client:
        assert await client.list_tools() == []
        cleared = await client.seen_as(pkg.client.Client).clear()
        assert cleared.result_type == "complete"


async def test_in_a_revision_without_extensions_there_is_none(pkg: Any) -> None:
    async with pkg.root.connect(
        painter(pkg), revision=REVISIONS[0], capabilities=declared(pkg)
    ) as client:
        assert (await client.call_tool("plain")).content[0].text == "text"
        with pytest.raises(pkg.root.MissingCapabilityError):
            client.seen_as(pkg.client.Client)
        with pytest.raises(pkg.root.MethodNotFoundError):
            await client.request("com.example/draw", {"canvas": "wall", "strokes": []})


def test_a_blocking_client_has_the_calls_too(pkg: Any) -> None:
    with pkg.root.connect_sync(painter(pkg), capabilities=declared(pkg)) as client:
        result = pkg.sync.SyncClient(client).draw("wall", [{"color": "blue", "width": 4}])
        assert result.count == 4
    with (
        pkg.root.connect_sync(painter(pkg)) as client,
        pytest.raises(pkg.root.MissingCapabilityError),
    ):
        pkg.sync.SyncClient(client)
