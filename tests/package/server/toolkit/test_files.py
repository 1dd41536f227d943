"""Images, audio and files that a tool reads from paths, and what it says of what it can't send."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from kit.live import server_with
from kit.wire import ALL
from mcpgen_runtime import (
    Annotations,
    Audio,
    Contents,
    EmbeddedResource,
    File,
    FileInput,
    Icon,
    Image,
    Message,
    Server,
    ToolResult,
    connect,
    to_builtins,
)
from requirements import EVERY_REVISION

pytestmark = pytest.mark.on_asyncio


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    contents = {
        "dot.png": b"png",
        "hum.wav": b"wav",
        "a b.txt": "\u00e9".encode(),
        "x.bin": b"\xff",
    }
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


async def returned_content(revision: str, value: Any, annotation: Any) -> list[dict[str, Any]]:
    """The content of the result of a tool that returns a value."""

    def tool() -> Any:
        return value

    tool.__annotations__["return"] = annotation
    server = Server("files")
    server.add_tool(tool)
    async with connect(server, revision=revision) as client:
        blocks: list[dict[str, Any]] = to_builtins((await client.call_tool("tool")).content)
        return blocks


PNG = {"type": "image", "data": base64.b64encode(b"png").decode(), "mimeType": "image/png"}


@pytest.mark.parametrize("annotation", [list[str | Image], tuple[str | Image, ...], list, Any])
@pytest.mark.parametrize("revision", [ALL[0], ALL[-1]])
async def test_images_are_read_from_paths_and_mixed_with_texts(
    revision: str, annotation: Any, folder: Path
) -> None:
    path = folder / "dot.png"
    for value in (["a dot", Image(path=path)], ("a dot", Image(path=str(path)))):
        content = await returned_content(revision, value, annotation)
        assert content == [{"type": "text", "text": "a dot"}, PNG]
    if annotation is Any:
        content = await returned_content(revision, [{"a": 1}, Image(path=path)], annotation)
        assert content == [{"type": "text", "text": '{"a":1}'}, PNG]


async def test_audio_and_files_are_read_from_paths(folder: Path) -> None:
    audio = Audio(path=folder / "hum.wav", mime_type="audio/wav")
    text, binary = File(path=folder / "a b.txt"), File(path=folder / "x.bin", name="y.bin")
    made = File(data=b"{}", mime_type="application/json", name="made.json")
    values = [Image(b"", "image/png"), audio, text, binary, made]
    empty, sound, *files = await returned_content(ALL[-1], values, list[Image | Audio | File])
    assert empty == {**PNG, "data": ""}
    assert sound == {"type": "audio", "data": "d2F2", "mimeType": "audio/wav"}
    assert [file["resource"] for file in files] == [
        {"uri": "file:///a%20b.txt", "text": "\u00e9", "mimeType": "text/plain"},
        {"uri": "file:///y.bin", "blob": "/w==", "mimeType": "application/octet-stream"},
        {"uri": "file:///made.json", "text": "{}", "mimeType": "application/json"},
    ]


def tool_with(**options: Any) -> None:
    """Register a tool with options."""
    Server("files").tool("t", **options)(lambda: "")


def nested(levels: int) -> Any:
    """A class, which has no JSON form, in so many lists."""
    return [nested(levels - 1)] if levels else object


MIME_TYPES = ("", "wav", "image/", "/png", "image/p ng", "i mage/png", "image/png; a=b c", "a/b")
call: Any = partial  # also with arguments of other types
CONTENT: list[partial[Any]] = [
    *(call(Image, b"x", each) for each in MIME_TYPES),
    *(call(Image, path=name) for name in ("dot.png", "a b.txt", PurePosixPath("dot.png"))),
    *(call(Image), call(Image, path="a b.txt", mime_type="image/x")),
    *(call(Audio, b"x", "audio/a"), call(Image, b"png", "image/png", path="dot.png")),
    *(call(Image, b"a", format=each) for each in ("JPG", ".png", "unheard")),
    *(call(Audio, b"a", format="mp3"), call(Image, b"a", "image/png", format="png")),
    *(call(Image, each, "image/png") for each in ("dot.png", PurePosixPath("dot.png"), 3, None)),
    *(call(File, path=name) for name in ("a b.txt", "x.bin", PurePosixPath("x.bin"))),
    *(call(File, path="x.bin", name=name) for name in ("y.bin", "", "e/f.txt")),
    *(call(File, data=b"a", mime_type=each) for each in (*MIME_TYPES[:2], "a/b; json", "a/xml")),
    *(call(File, data=b"a", name=each) for each in ("a.pict", "b.json", "c")),
    *(call(File, data=data, mime_type="text/csv") for data in (b"\xff", b"", "text", None)),
    *(call(File, data=b"{}", format="JSON"), call(File, data=b"", mime_type="a/toml;b")),
    *(call(File), call(File, data=b"", path="dot.png")),
    call(File, data=b"a", mime_type="a/b", format="b"),
    *(call(Annotations, priority=each) for each in (-0.01, 0, 1, 1.01)),
    *(call(Message, role, "x") for role in ("user", "assistant", "system")),
    *(
        call(Contents, **each)
        for each in ({}, {"text": ""}, {"blob": b""}, {"text": "", "blob": b""})
    ),
    *(call(EmbeddedResource, Contents(uri, text="x")) for uri in ("", "x://a")),
    *(call(ToolResult, **{name: 1}) for name in ("structured", "structured_content")),
    *(call(tool_with, annotations=each) for each in ({"b": 1, "a": 1}, 5, {"title": 5}, {})),
    *(call(tool_with, icons=[each]) for each in ({}, {"src": "a", "mimeType": "b"}, Icon(src="a"))),
    *(call(tool_with, meta={"a": [1, each]}) for each in (object, {"b\n": object}, {1: {2: 3j}})),
    *(call(tool_with, meta={"a": nested(levels)}) for levels in (18, 19)),
]


@pytest.mark.requirement(
    "prompts.image-encoded",
    "prompts.audio-encoded",
    "content.annotations-priority",
    "content.role-values",
    "resources.contents-text-or-blob",
    revisions=EVERY_REVISION,
)
def test_content_is_made_or_refused_by_its_constructor(
    folder: Path, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    rows: list[str] = []
    for make in CONTENT:
        given = f"{make.func.__name__} {make.args} {make.keywords}"
        try:
            rows.append(f"{given} -> {to_builtins(make())}")
        except (TypeError, ValueError) as error:
            rows.append(f"{given} -> {type(error).__name__}: {error}")
    assert rows == snapshot


DATA = base64.b64encode(b"1234").decode()


class Picture(FileInput, accept=["image/png", "Image/J*", "image/jpeg"], max_size=4):
    pass


class Report(FileInput, accept=[".pdf", "text/plain"]):
    pass


def server() -> Server:
    def sizes(
        picture: Picture,
        any_file: FileInput | None = None,
        report: Report | None = None,
        data: bytes = b"",
    ) -> list[str]:
        files = [picture, any_file, report]
        return [f"{file.media_type} {len(file)}" for file in files if file is not None]

    def same(file: FileInput) -> FileInput:
        assert file == b"ab"
        return FileInput(file, file.media_type)

    return server_with(sizes, same)


async def test_the_schema_says_which_files_are_accepted() -> None:
    tool, _ = await server().list_tools()
    properties = tool.input_schema["properties"]
    limits = {"accept": ["image/png", "Image/J*", "image/jpeg"], "maxSize": 4}
    assert properties["picture"] == {"type": "string", "format": "uri", "x-mcp-file": limits}
    assert properties["any_file"]["anyOf"][0]["x-mcp-file"] == {}
    assert "x-mcp-file" not in str(properties["data"])
    assert tool.input_schema["required"] == ["picture"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"picture": f"data:image/png;base64,{DATA}"}, ["image/png 4"]),
        ({"picture": "DATA:IMAGE/PNG;name=a.png,a%20b"}, ["image/png 3"]),
        ({"picture": "data:image/jpeg,", "any_file": "data:,a"}, ["image/jpeg 0", "text/plain 1"]),
        ({"picture": "data:image/png,", "report": "data:a/b,cd"}, ["image/png 0", "a/b 2"]),
    ],
)
async def test_a_function_gets_the_bytes_of_a_file(
    arguments: Mapping[str, str], expected: list[str]
) -> None:
    result = await server().call_tool("sizes", arguments)
    assert result.structured_content == {"result": expected}


@pytest.mark.parametrize(
    ("picture", "text"),
    [
        (f"data:text/plain;base64,{DATA}", "expected a file of type image/png or Image/J* or"),
        ("data:image/png;base64,MTIzNDU=", "expected at most 4 bytes, got 5"),
        ("data:image/png;base64,%", "expected Base64"),
        ("data:image/png;base64", "expected data:TYPE;base64,DATA"),
        ("file:///etc/passwd", "expected a data: URI, got 'file:///etc/passwd'"),
        (5, "expected a data: URI, got 5"),
    ],
)
async def test_another_file_is_refused_with_its_argument(picture: object, text: str) -> None:
    result: Any = await server().call_tool("sizes", {"picture": picture})
    assert result.is_error
    assert text in result.content[0].text
    assert "picture" in result.content[0].text


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"accept": "image/png"}, TypeError),
        ({"accept": ["image"]}, ValueError),
        ({"max_size": 0}, ValueError),
    ],
)
def test_limits_that_mean_nothing_are_refused(options: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="expected"):
        type("Refused", (FileInput,), {}, **options)


async def test_a_file_is_bytes_and_may_be_a_result() -> None:
    result = await server().call_tool("same", {"file": "data:a/b,ab"})
    assert result.structured_content == {"result": "data:a/b;base64,YWI="}
    assert isinstance(FileInput(b""), bytes)
    assert not isinstance(b"", FileInput)
