"""Resources and templates over the wire: lists, reading, what is not there, subscriptions."""

from __future__ import annotations

import base64
import logging
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import anyio.to_thread
import pytest

from kit.wire import (
    ALL,
    HANDSHAKE,
    LISTEN,
    PER_REQUEST,
    UPDATED,
    every,
    facts,
    legacy,
    modern,
    request,
    speaking_to,
    tag,
)
from mcpgen_runtime import (
    Annotations,
    AnyPath,
    Audio,
    Contents,
    Context,
    File,
    Icon,
    Image,
    ResourceLink,
    ResourceNotFoundError,
    Server,
    Text,
)
from requirements import EVERY_REVISION


def make_server() -> Server:
    """A server with resources of several kinds, and templates."""
    server = Server("resources", "1", subscribe=True)

    @server.resource(
        "weird+x:abc",
        name="odd",
        title="Odd",
        mime_type="text/plain",
        size=1000,
        annotations=Annotations(audience=["assistant"], priority=1),
        icons=[Icon(src="data:,x")],
        meta={"com.example/k": 1},
    )
    async def odd() -> str:
        """An odd scheme."""
        return "t\u00e9xt"

    for name, value in (
        ("bytes", bytes(range(256))),
        ("json", {"a": [1, None]}),
        ("empty", []),
        ("several", [Contents("x://a", "a", mime_type="a/b"), Contents("x://b", blob=b"\xff")]),
        ("none", None),
    ):
        server.add_resource(lambda value=value: value, f"x://{name}", name=name)

    @server.resource("x://broken")
    async def broken() -> str:
        raise RuntimeError("hunter2")

    @server.resource("x://{a}/{b}", mime_type="text/plain")
    async def pair(a: int, b: str, ctx: Context) -> str:
        if b == "gone":
            raise ResourceNotFoundError(f"x://{a}/gone")
        return f"{a}+{b} in {ctx.revision}"

    @server.resource("file:///{+path}")
    async def files(path: str) -> str:
        return f"read {path}"

    return server


def guarded() -> Server:
    """A server with templates whose values may stand for paths."""
    server = Server("guarded", "1", subscribe=True)

    @server.resource("docs://{name}")
    async def document(name: str) -> str:
        return f"read {name}"

    @server.resource("tree://h{/parts*}{?base}")
    async def tree(parts: list[str], base: str = "") -> str:
        return f"read {parts} below {base}"

    @server.resource("any://{+path}")
    async def anything(path: AnyPath) -> str:
        return f"read {path}"

    @server.resource("anytree://h{/parts*}")
    async def any_tree(parts: list[AnyPath]) -> str:
        return f"read {parts}"

    return server


async def read(server: Server, revision: str, uri: str) -> Any:
    async with speaking_to(server, revision) as end:
        return await end.ask("resources/read", {"uri": uri})


async def contents_of(server: Server, revision: str, uri: str) -> list[dict[str, Any]]:
    contents: list[dict[str, Any]] = (await read(server, revision, uri))["result"]["contents"]
    return contents


@pytest.mark.requirement(
    "resources.list-result-shape",
    "resources.list-result-shape-2026",
    "resources.templates-result-shape",
    "resources.templates-result-shape-2026",
    "resources.uri-and-name-required",
)
@every
async def test_resources_and_templates_are_listed_apart(revision: str) -> None:
    async with speaking_to(make_server(), revision) as end:
        listed = (await end.ask("resources/list"))["result"]
        templates = (await end.ask("resources/templates/list"))["result"]
    assert [item["uri"] for item in listed["resources"]][:2] == ["weird+x:abc", "x://bytes"]
    assert [(item["uriTemplate"], item["name"]) for item in templates["resourceTemplates"]] == [
        ("x://{a}/{b}", "pair"),
        ("file:///{+path}", "files"),
    ]
    first = listed["resources"][0]
    assert (first["name"], first["description"]) == ("odd", "An odd scheme.")
    assert (first["mimeType"], first["size"]) == ("text/plain", 1000)
    assert first["annotations"] == {"audience": ["assistant"], "priority": 1}
    hints = {"resultType", "ttlMs", "cacheScope"}
    for result in (listed, templates):
        assert hints & result.keys() == (hints if revision in PER_REQUEST else set())


@pytest.mark.requirement(
    "resources.read-result-shape",
    "resources.read-result-shape-2026",
    "resources.contents-text-or-blob",
    "resources.text-only-if-text",
    "resources.binary-encoded",
)
@every
async def test_text_is_text_and_bytes_are_a_blob(revision: str) -> None:
    server = make_server()
    (text,) = await contents_of(server, revision, "weird+x:abc")
    assert text == {"uri": "weird+x:abc", "mimeType": "text/plain", "text": "t\u00e9xt"}
    (blob,) = await contents_of(server, revision, "x://bytes")
    assert base64.b64decode(blob["blob"], validate=True) == bytes(range(256))
    assert blob["mimeType"] == "application/octet-stream"
    assert "text" not in blob
    (made,) = await contents_of(server, revision, "x://json")
    assert (made["text"], made["mimeType"]) == ('{"a":[1,null]}', "application/json")
    several = await contents_of(server, revision, "x://several")
    assert [item["uri"] for item in several] == ["x://a", "x://b"]
    assert (await contents_of(server, revision, "x://empty"))[0]["text"] == "[]"


@pytest.mark.requirement("resources.templates-rfc6570")
@every
async def test_a_template_passes_typed_variables_to_its_function(revision: str) -> None:
    server = make_server()
    (content,) = await contents_of(server, revision, "x://1/two%20")
    assert content["text"] == f"1+two  in {revision}"
    assert content["uri"] == "x://1/two%20"
    error = (await read(server, revision, "x://one/two"))["error"]
    assert (error["code"], "'a'" in error["message"]) == (-32602, True)


@pytest.mark.requirement(
    "resources.not-found-32002",
    "resources.not-found-32602",
    "resources.no-32002-emitted",
    "resources.not-found-no-empty-contents",
)
@pytest.mark.requirement(
    "resources.sanitize-file-paths", "resources.validate-uris", "resources.internal-error"
)
@every
@pytest.mark.parametrize(
    ("uri", "code"),
    [
        *((uri, None) for uri in ("x://nowhere", "x://1/gone", "y:z")),  # there is none
        ("not a uri", -32602),
        ("file:///../etc/passwd", -32602),
        ("file:///a/%2e%2e/%2e%2e/etc/passwd", -32602),
        ("x://broken", -32603),
        ("x://none", -32603),
    ],
)
async def test_what_is_not_read_is_an_error_of_its_kind_without_details(
    revision: str, uri: str, code: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.CRITICAL):
        error = (await read(make_server(), revision, uri))["error"]
    assert error["code"] == (code or facts(revision).errors.resource_not_found)
    assert "hunter2" not in str(error)
    if code is None:
        assert error["data"] == {"uri": uri}
        assert error["code"] == -32602 or revision not in PER_REQUEST


CLIMBING = [
    "..",
    "..%2F..%2Fetc%2Fpasswd",
    "..%5C..%5Cboot.ini",
    "%2e%2e%2fetc",
    "%252e%252e%252fetc",
    "%25252e%25252e%25252fetc",
    "%2Fetc%2Fpasswd",
    "%252Fetc",
    "%5C%5Chost%5Cshare",
    "C:%5Cwindows",
    "C%3Awindows",
    "a%2F..%2Fb",
    "a%00.txt",
]
HARMLESS = ["a", "a..b", "...", "a%2Fb%2Fc", "100%25", "caf%C3%A9", "ab:c", ".hidden"]


@pytest.mark.requirement(
    "resources.sanitize-file-paths", "resources.validate-uris", revisions=EVERY_REVISION
)
@pytest.mark.parametrize("uri", ["docs://{}", "tree://h/a/{}", "tree://h/a?base={}"])
@pytest.mark.parametrize("value", CLIMBING)
@pytest.mark.parametrize("request_name", ["resources/read", "resources/subscribe"])
async def test_a_value_that_leaves_its_place_reaches_no_function(
    uri: str, value: str, request_name: str
) -> None:
    async with speaking_to(guarded(), HANDSHAKE[-1]) as end:
        error = (await end.ask(request_name, {"uri": uri.format(value)}))["error"]
    assert error["code"] == -32602
    assert "stays in its place" in error["message"]


@every
@pytest.mark.parametrize("value", HARMLESS)
async def test_a_value_that_only_looks_odd_reaches_the_function(revision: str, value: str) -> None:
    (content,) = await contents_of(guarded(), revision, f"docs://{value}")
    assert content["text"] == f"read {unquote(value)}"


@every
@pytest.mark.parametrize("value", [each for each in CLIMBING if "\x00" not in unquote(each)])
async def test_a_parameter_may_say_that_it_takes_any_path(revision: str, value: str) -> None:
    server = guarded()
    (content,) = await contents_of(server, revision, f"any://{value}")
    assert content["text"] == f"read {unquote(value)}"
    (content,) = await contents_of(server, revision, f"anytree://h/{value}")
    assert content["text"] == f"read {[unquote(value)]}"


@pytest.mark.requirement(
    "resources.subscribe-request",
    "resources.unsubscribe-request",
    "resources.updated-only-if-subscribed",
    "resources.updated-shape",
)
@legacy
async def test_updates_come_for_what_is_subscribed_to_and_end_with_it(revision: str) -> None:
    server = make_server()
    async with speaking_to(server, revision) as end:

        async def updated(uri: str) -> list[str]:
            """The updates after a change; a later change marks the end."""
            uris: list[str] = []
            for changed in (uri, "x://json"):
                await anyio.to_thread.run_sync(server.resource_updated, changed)
            while "x://json" not in uris:
                message = await end.receive()
                assert message["method"] == UPDATED
                uris.append(message["params"]["uri"])
            return uris[:-1]

        await end.ask("resources/subscribe", {"uri": "x://json"})
        assert (await end.ask("resources/subscribe", {"uri": "x://bytes"}))["result"] == {}
        assert await updated("x://bytes") == ["x://bytes"]
        assert await updated("x://empty") == []
        assert (await end.ask("resources/unsubscribe", {"uri": "x://bytes"}))["result"] == {}
        assert await updated("x://bytes") == []
        absent = await end.ask("resources/subscribe", {"uri": "x://nowhere"})
        assert absent["error"]["code"] == facts(revision).errors.resource_not_found


@pytest.mark.parametrize(("is_one_more", "first"), [(False, "x://0/b"), (True, "x://1/b")])
async def test_of_too_many_waiting_updates_the_oldest_is_dropped(
    is_one_more: bool, first: str
) -> None:
    server, uris = make_server(), [f"x://{number}/b" for number in range(1000)]
    async with speaking_to(server, HANDSHAKE[-1]) as end:
        for uri in uris:
            await end.ask("resources/subscribe", {"uri": uri})
        for uri in uris:
            server.resource_updated(uri)
        if is_one_more:
            server.remove_resource("x://none")
        assert (await end.receive())["params"]["uri"] == first


@pytest.mark.requirement("resources.subscribe-method-removed", "subscriptions.replaces-subscribe")
@modern
@pytest.mark.parametrize("method", ["resources/subscribe", "resources/unsubscribe"])
async def test_sessionless_revisions_have_no_subscribe_request(revision: str, method: str) -> None:
    async with speaking_to(make_server(), revision) as end:
        assert (await end.ask(method, {"uri": "x://json"}))["error"]["code"] == -32601


@pytest.mark.requirement(
    "resources.updated-delivered-on-listen",
    "resources.updated-only-watched",
    "resources.updated-shape",
    "subscriptions.only-requested-resources",
)
@modern
async def test_updates_come_on_the_stream_that_watches_the_resource(revision: str) -> None:
    server = make_server()
    wanted = {"resourceSubscriptions": ["x://bytes", "x://json"]}
    async with speaking_to(server, revision) as end:
        await end.send(request(revision, LISTEN, {"notifications": wanted}, id="s1"))
        assert (await end.receive())["params"]["notifications"] == wanted
        server.resource_updated("x://empty")
        server.resource_updated("x://json")
        update = await end.receive()
    assert update["params"] == {"uri": "x://json", "_meta": {tag(revision): "s1"}}


@pytest.mark.requirement("resources.subscribe-flag-legacy", "resources.subscribe-flag-2026")
@every
async def test_a_server_that_was_not_told_to_offers_no_subscriptions(revision: str) -> None:
    quiet = Server("quiet", "1")
    quiet.resource("x://a")(lambda: "a")
    with pytest.raises(ValueError, match="subscribe=True"):
        quiet.resource_updated("x://a")
    async with speaking_to(quiet, revision) as end:
        if revision in HANDSHAKE:
            answer = await end.ask("resources/subscribe", {"uri": "x://a"})
            assert answer["error"]["code"] == -32601
        else:
            wanted = {"notifications": {"resourceSubscriptions": ["x://a"]}}
            await end.send(request(revision, LISTEN, wanted, id="s"))
            assert (await end.receive())["params"]["notifications"] == {}


async def test_a_template_gives_a_function_of_any_names_all_variables() -> None:
    open_server = Server("open")

    @open_server.resource("any://{city}{?day}")
    async def anything(**values: Any) -> str:
        return repr(values)

    (contents,) = (await open_server.read_resource("any://Oslo?day=2")).contents
    assert contents.text == "{'city': 'Oslo', 'day': '2'}"


@dataclass
class Town:
    name: str


TEXT, CSV, BLOB, JSON = "text/plain", "text/csv", "application/octet-stream", "application/json"


@pytest.mark.parametrize(
    ("value", "own", "default", "contents"),
    [
        ("a", "x/y", TEXT, {"text": "a"}),
        (Text("a"), "x/y", TEXT, {"text": "a"}),
        (b"a", "x/y", BLOB, {"blob": "YQ=="}),
        (bytearray(b"a"), "x/y", BLOB, {"blob": "YQ=="}),
        (Image(b"a", "image/png"), "x/y", "image/png", {"blob": "YQ=="}),
        (Audio(b"a", "audio/wav"), "x/y", "audio/wav", {"blob": "YQ=="}),
        (File(data=b"a", name="a.csv"), CSV, CSV, {"text": "a"}),
        ([], "x/y", JSON, {"text": "[]"}),
        ({"a": 1}, "x/y", JSON, {"text": '{"a":1}'}),
        (Town("Oslo"), "x/y", JSON, {"text": '{"name":"Oslo"}'}),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("mime_type", ["x/y", None])
async def test_a_value_becomes_contents_of_its_kind(
    mime_type: str | None, value: Any, own: str, default: str, contents: dict[str, str]
) -> None:
    one = Server("one")
    one.add_resource(lambda: value, "x://a", name="a", mime_type=mime_type)
    async with speaking_to(one, ALL[-1]) as end:
        result = (await end.ask("resources/read", {"uri": "x://a"}))["result"]
        (listed,) = (await end.ask("resources/list"))["result"]["resources"]
    kind = default if mime_type is None else own
    assert result["contents"] == [{"uri": "x://a", "mimeType": kind, **contents}]
    assert listed.get("mimeType") == mime_type


async def test_a_link_is_no_contents(caplog: pytest.LogCaptureFixture) -> None:
    one = Server("one")
    one.add_resource(lambda: ResourceLink(uri="x://b", name="b"), "x://a", name="a")
    assert (await read(one, ALL[-1], "x://a"))["error"]["code"] == -32603
    assert "resource 'x://a': expected contents, got ResourceLink" in caplog.text


def test_a_template_fits_the_parameters_of_its_function() -> None:
    def text(a: str, b: int = 1) -> str:
        return a

    def several(a: list[str]) -> str:
        return ""

    def anything(a: Any) -> str:
        return ""

    one: Any = Server("one")
    fitting = [("x://{a}", text), ("x://{a}{?b}", text), ("x://h{/a*}", several)]
    for uri, function in (*fitting, ("x://h{/a*}", anything)):
        one.add_resource(function, uri)
        one.remove_resource(uri)
    for uri, error in (
        ("x://h{/a*}", "a* is a list of values, and the function takes no list"),
        ("x://{b}", "nothing in the URI gives a"),
        ("x://plain", "nothing in the URI gives a"),
        ("x://{a}/{c}", "the function takes no c"),
        ("x:// a", "expected an absolute URI"),
        ("x:{", "resource template 'x:{'"),
    ):
        with pytest.raises((TypeError, ValueError), match=re.escape(error)):
            one.add_resource(text, uri)


def test_wrong_uses_of_the_decorator_are_refused() -> None:
    one: Any = Server("one")
    with pytest.raises(TypeError, match=r"got @server\.resource$"):
        one.resource(lambda: "")
    for options, error in (
        ({"kind": "text"}, "unexpected keyword argument 'kind'"),
        ({"cache": 5}, "cache: expected CacheHint, got int"),
        ({"mime_type": "json"}, "mime_type: expected type/subtype, got 'json'"),
    ):
        with pytest.raises((TypeError, ValueError), match=error):
            one.resource("x://a", **options)(lambda: "")
