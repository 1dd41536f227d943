"""Resources and templates over the wire: lists, reading, what is not there, subscriptions."""

from __future__ import annotations

import base64
import logging
import re
from typing import Any
from urllib.parse import unquote

import pytest

from kit.wire import ALL, HANDSHAKE, PER_REQUEST, UPDATED, RawEnd, facts, speaking_to
from mcpgen_runtime import AnyPath
from mcpgen_runtime.errors import ResourceNotFoundError
from mcpgen_runtime.server.chosen import Context, Server
from mcpgen_runtime.server.toolkit.content import (
    Annotations,
    Audio,
    Contents,
    File,
    Icon,
    Image,
    ResourceLink,
    Text,
)
from requirements import EVERY_REVISION

every = pytest.mark.parametrize("revision", ALL)
legacy = pytest.mark.parametrize("revision", HANDSHAKE)

server = Server("resources", "1", subscribe=True)
BYTES = bytes(range(256))


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


@server.resource("x://bytes")
def binary() -> bytes:
    return BYTES


@server.resource("x://json")
async def as_json() -> dict[str, Any]:
    return {"a": [1, None]}


@server.resource("file:///dir")
async def directory() -> list[Contents]:
    return [
        Contents("file:///dir/a", "a", mime_type="text/x-a"),
        Contents("file:///dir/b", blob=b"\xff"),
    ]


@server.resource("x://empty")
async def empty() -> list[Contents]:
    return []


@server.resource("x://broken")
async def broken() -> str:
    raise RuntimeError("hunter2")


@server.resource("x://none")
async def none() -> None: ...


@server.resource("x://{a}/{b}", mime_type="text/plain")
async def pair(a: int, b: str, ctx: Context) -> str:
    if b == "gone":
        raise ResourceNotFoundError(f"x://{a}/gone")
    return f"{a}+{b} in {ctx.revision}"


@server.resource("file:///{+path}")
async def files(path: str) -> str:
    return f"read {path}"


GUARDED = Server("guarded", "1", subscribe=True)


@GUARDED.resource("docs://{name}")
async def document(name: str) -> str:
    return f"read {name}"


@GUARDED.resource("tree://h{/parts*}{?base}")
async def tree(parts: list[str], base: str = "") -> str:
    return f"read {parts} below {base}"


@GUARDED.resource("any://{+path}")
async def anything(path: AnyPath) -> str:
    return f"read {path}"


@GUARDED.resource("anytree://h{/parts*}")
async def any_tree(parts: list[AnyPath]) -> str:
    return f"read {parts}"


async def read(revision: str, uri: str, server: Server = server) -> Any:
    async with speaking_to(server, revision) as end:
        return await end.ask("resources/read", {"uri": uri})


@pytest.mark.requirement(
    "resources.list-result-shape",
    "resources.list-result-shape-2026",
    "resources.templates-result-shape",
    "resources.templates-result-shape-2026",
    "resources.uri-and-name-required",
    "resources.list-answered",
)
@every
async def test_resources_and_templates_are_listed_apart(revision: str) -> None:
    async with speaking_to(server, revision) as end:
        listed = (await end.ask("resources/list"))["result"]
        templates = (await end.ask("resources/templates/list"))["result"]
    assert [item["uri"] for item in listed["resources"]][:2] == ["weird+x:abc", "x://bytes"]
    assert [item["uriTemplate"] for item in templates["resourceTemplates"]] == [
        "x://{a}/{b}",
        "file:///{+path}",
    ]
    assert templates["resourceTemplates"][0]["name"] == "pair"
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
    (text,) = (await read(revision, "weird+x:abc"))["result"]["contents"]
    assert text == {"uri": "weird+x:abc", "mimeType": "text/plain", "text": "t\u00e9xt"}
    (blob,) = (await read(revision, "x://bytes"))["result"]["contents"]
    assert base64.b64decode(blob["blob"], validate=True) == BYTES
    assert blob["mimeType"] == "application/octet-stream"
    assert "text" not in blob
    (made,) = (await read(revision, "x://json"))["result"]["contents"]
    assert (made["text"], made["mimeType"]) == ('{"a":[1,null]}', "application/json")


@every
async def test_one_read_may_give_several_contents_or_none(revision: str) -> None:
    contents = (await read(revision, "file:///dir"))["result"]["contents"]
    assert [item["uri"] for item in contents] == ["file:///dir/a", "file:///dir/b"]
    assert (await read(revision, "x://empty"))["result"]["contents"] == []


@pytest.mark.requirement("resources.templates-rfc6570")
@every
async def test_a_template_passes_typed_variables_to_its_function(revision: str) -> None:
    (content,) = (await read(revision, "x://1/two%20"))["result"]["contents"]
    assert content["text"] == f"1+two  in {revision}"
    assert content["uri"] == "x://1/two%20"
    error = (await read(revision, "x://one/two"))["error"]
    assert (error["code"], "'a'" in error["message"]) == (-32602, True)


@pytest.mark.requirement(
    "resources.not-found-32002",
    "resources.not-found-32602",
    "resources.no-32002-emitted",
    "resources.not-found-no-empty-contents",
)
@every
@pytest.mark.parametrize("uri", ["x://nowhere", "x://1/gone", "y:z"])
async def test_a_missing_resource_is_an_error_with_its_uri(revision: str, uri: str) -> None:
    error = (await read(revision, uri))["error"]
    assert error["code"] == facts(revision).errors.resource_not_found
    assert error["data"] == {"uri": uri}
    if revision in PER_REQUEST:
        assert error["code"] == -32602


@pytest.mark.requirement("resources.validate-uris", "resources.sanitize-file-paths")
@every
@pytest.mark.parametrize(
    "uri", ["not a uri", "file:///../etc/passwd", "file:///a/%2e%2e/%2e%2e/etc/passwd"]
)
async def test_a_uri_that_is_none_or_climbs_never_reaches_a_function(
    revision: str, uri: str
) -> None:
    assert (await read(revision, uri))["error"]["code"] == -32602


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
    async with speaking_to(GUARDED, HANDSHAKE[-1]) as end:
        error = (await end.ask(request_name, {"uri": uri.format(value)}))["error"]
    assert error["code"] == -32602
    assert "stays in its place" in error["message"]


@pytest.mark.requirement("resources.validate-uris")
@every
@pytest.mark.parametrize("value", HARMLESS)
async def test_a_value_that_only_looks_odd_reaches_the_function(revision: str, value: str) -> None:
    (content,) = (await read(revision, f"docs://{value}", GUARDED))["result"]["contents"]
    assert content["text"] == f"read {unquote(value)}"


@pytest.mark.requirement("resources.validate-uris")
@every
@pytest.mark.parametrize("value", [each for each in CLIMBING if "\x00" not in unquote(each)])
async def test_a_parameter_may_say_that_it_takes_any_path(revision: str, value: str) -> None:
    (content,) = (await read(revision, f"any://{value}", GUARDED))["result"]["contents"]
    assert content["text"] == f"read {unquote(value)}"
    (content,) = (await read(revision, f"anytree://h/{value}", GUARDED))["result"]["contents"]
    assert content["text"] == f"read {[unquote(value)]}"


@pytest.mark.requirement("resources.internal-error")
@every
@pytest.mark.parametrize("uri", ["x://broken", "x://none"])
async def test_a_failing_function_is_an_internal_error_without_details(
    revision: str, uri: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.CRITICAL):
        error = (await read(revision, uri))["error"]
    assert error["code"] == -32603
    assert "hunter2" not in str(error)


async def updates(end: RawEnd, change: Any) -> list[Any]:
    """URIs of the updates that a change brings; a later change marks the end."""
    change()
    server.resource_updated("x://json")
    uris: list[Any] = []
    while not uris or uris[-1] != "x://json":
        message = await end.receive()
        assert message["method"] == UPDATED
        uris.append(message["params"]["uri"])
    return uris[:-1]


@pytest.mark.requirement(
    "resources.subscribe-request",
    "resources.unsubscribe-request",
    "resources.updated-only-if-subscribed",
    "resources.updated-shape",
)
@legacy
async def test_updates_come_for_what_is_subscribed_to_and_end_with_it(revision: str) -> None:
    async with speaking_to(server, revision) as end:
        await end.ask("resources/subscribe", {"uri": "x://json"})
        assert (await end.ask("resources/subscribe", {"uri": "x://bytes"}))["result"] == {}
        assert await updates(end, lambda: server.resource_updated("x://bytes")) == ["x://bytes"]
        assert await updates(end, lambda: server.resource_updated("x://empty")) == []
        assert (await end.ask("resources/unsubscribe", {"uri": "x://bytes"}))["result"] == {}
        assert await updates(end, lambda: server.resource_updated("x://bytes")) == []


@legacy
async def test_absent_resources_cannot_be_subscribed_to(revision: str) -> None:
    async with speaking_to(server, revision) as end:
        answer = await end.ask("resources/subscribe", {"uri": "x://nowhere"})
    assert answer["error"]["code"] == facts(revision).errors.resource_not_found


@pytest.mark.requirement("resources.subscribe-method-removed")
@pytest.mark.parametrize("revision", PER_REQUEST)
@pytest.mark.parametrize("method", ["resources/subscribe", "resources/unsubscribe"])
async def test_sessionless_revisions_have_no_subscribe_request(revision: str, method: str) -> None:
    async with speaking_to(server, revision) as end:
        assert (await end.ask(method, {"uri": "x://json"}))["error"]["code"] == -32601


@pytest.mark.requirement(
    "resources.subscribe-flag-2026",
    "resources.updated-delivered-on-listen",
    "resources.updated-only-watched",
    "resources.updated-shape",
)
@pytest.mark.parametrize("revision", PER_REQUEST)
async def test_updates_come_on_the_stream_that_watches_the_resource(revision: str) -> None:
    wanted = {"resourceSubscriptions": ["x://bytes", "x://json"]}
    async with speaking_to(server, revision) as end:
        await end.send(open_subscription(revision, "s1", wanted))
        acknowledged = await end.receive()
        assert acknowledged["params"]["notifications"] == wanted
        server.resource_updated("x://empty")
        server.resource_updated("x://json")
        update = await end.receive()
    key = facts(revision).meta.subscription_id
    assert update["params"] == {"uri": "x://json", "_meta": {key: "s1"}}


def open_subscription(revision: str, identifier: str, wanted: Any) -> Any:
    from kit.wire import request

    method = facts(revision).behaviour.listen
    assert method is not None
    return request(revision, method, {"notifications": wanted}, id=identifier)


@pytest.mark.requirement("resources.subscribe-flag-legacy", "resources.subscribe-flag-2026")
@every
async def test_a_server_that_was_not_told_to_offers_no_subscriptions(revision: str) -> None:
    quiet = Server("quiet", "1")
    quiet.resource("x://a")(as_json)
    with pytest.raises(ValueError, match="subscribe=True"):
        quiet.resource_updated("x://a")
    async with speaking_to(quiet, revision) as end:
        if revision in HANDSHAKE:
            answer = await end.ask("resources/subscribe", {"uri": "x://a"})
            assert answer["error"]["code"] == -32601
        else:
            await end.send(open_subscription(revision, "s", {"resourceSubscriptions": ["x://a"]}))
            assert (await end.receive())["params"]["notifications"] == {}


@pytest.mark.anyio
async def test_a_template_gives_a_function_of_any_names_all_variables() -> None:
    open_server = Server("open")

    @open_server.resource("any://{city}{?day}")
    async def anything(**values: Any) -> str:
        return repr(values)

    (contents,) = (await open_server.read_resource("any://Oslo?day=2")).contents
    assert contents.text == "{'city': 'Oslo', 'day': '2'}"


def blob(mime_type: str) -> dict[str, Any]:
    return {"blob": "YQ==", "mimeType": mime_type}


def text(mime_type: str, value: str = "a") -> dict[str, Any]:
    return {"text": value, "mimeType": mime_type}


@pytest.mark.parametrize(
    ("value", "own", "default"),
    [
        ("a", text("x/y"), text("text/plain")),
        (Text("a"), text("x/y"), text("text/plain")),
        (b"a", blob("x/y"), blob("application/octet-stream")),
        (bytearray(b"a"), blob("x/y"), blob("application/octet-stream")),
        (Image(b"a", "image/png"), blob("x/y"), blob("image/png")),
        (Audio(b"a", "audio/wav"), blob("x/y"), blob("audio/wav")),
        (File(data=b"a", name="a.csv"), text("text/csv"), text("text/csv")),
        ([], text("x/y", "[]"), text("application/json", "[]")),
        ({"a": 1}, text("x/y", '{"a":1}'), text("application/json", '{"a":1}')),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("mime_type", ["x/y", None])
@pytest.mark.anyio
async def test_a_value_becomes_contents_of_its_kind(
    mime_type: str | None, value: Any, own: Any, default: Any
) -> None:
    one = Server("one")
    one.resource("x://a", name="a", mime_type=mime_type)(lambda: value)
    async with speaking_to(one, ALL[-1]) as end:
        result = (await end.ask("resources/read", {"uri": "x://a"}))["result"]
        (listed,) = (await end.ask("resources/list"))["result"]["resources"]
    assert result["contents"] == [{"uri": "x://a", **(default if mime_type is None else own)}]
    assert listed == {
        "uri": "x://a",
        "name": "a",
        **({} if mime_type is None else {"mimeType": mime_type}),
    }


@pytest.mark.anyio
async def test_a_link_is_no_contents(caplog: pytest.LogCaptureFixture) -> None:
    one = Server("one")
    one.resource("x://a", name="a")(lambda: ResourceLink(uri="x://b", name="b"))
    assert (await read(ALL[-1], "x://a", one))["error"]["code"] == -32603
    assert "resource 'x://a': expected contents, got ResourceLink" in caplog.text


def of_text(a: str, b: int = 1) -> str:
    return a


def of_list(a: list[str]) -> str:
    return ""


def of_anything(a: Any) -> str:
    return ""


@pytest.mark.parametrize(
    ("uri", "function", "error"),
    [
        ("x://{a}", of_text, None),
        ("x://{a}{?b}", of_text, None),
        ("x://h{/a*}", of_list, None),
        ("x://h{/a*}", of_anything, None),
        ("x://h{/a*}", of_text, "a* is a list of values, and the function takes no list"),
        ("x://{b}", of_text, "nothing in the URI gives a"),
        ("x://{a}/{c}", of_text, "the function takes no c"),
        ("x:// a", of_text, "expected an absolute URI"),
    ],
)
def test_a_template_fits_the_parameters_of_its_function(
    uri: str, function: Any, error: str | None
) -> None:
    one = Server("one")
    if error is None:
        one.add_resource(function, uri)
        one.remove_resource(uri)
        one.add_resource(function, uri)
    else:
        with pytest.raises((TypeError, ValueError), match=re.escape(error)):
            one.add_resource(function, uri)


def test_wrong_uses_of_the_decorator_are_refused() -> None:
    one: Any = Server("one")
    with pytest.raises(TypeError, match=r"got @server\.resource$"):
        one.resource(of_text)
    with pytest.raises(TypeError, match="unexpected keyword argument 'kind'"):
        one.resource("x://a", kind="text")
    with pytest.raises(TypeError, match="cache: expected CacheHint, got int"):
        one.resource("x://a", cache=5)(lambda: "")
