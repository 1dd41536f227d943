"""Images, audio and files that a tool reads from paths, and what it says of what it can't send."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kit.live import server_with
from kit.wire import ALL
from mcpgen_runtime import Audio, File, FileInput, Image, Server, connect, to_builtins

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


OfAnyData: Any = Image
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
    values = [audio, text, binary, made]
    sound, *files = await returned_content(ALL[-1], values, list[Audio | File])
    assert sound == {"type": "audio", "data": "d2F2", "mimeType": "audio/wav"}
    assert [file["resource"] for file in files] == [
        {"uri": "file:///a%20b.txt", "text": "\u00e9", "mimeType": "text/plain"},
        {"uri": "file:///y.bin", "blob": "/w==", "mimeType": "application/octet-stream"},
        {"uri": "file:///made.json", "text": "{}", "mimeType": "application/json"},
    ]


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda folder: Image(path=folder / "a b.txt"), r"expected image/\*, got text/plain"),
        (lambda folder: Image(b"png", "image/png", path=folder / "dot.png"), "got both"),
        (lambda folder: Image(), "expected type/subtype"),
        (lambda folder: Image(b"a", "image/png", format="png"), "mime_type or format, got both"),
        (lambda _: File(data=b"a", mime_type="a/b", format="txt"), "mime_type or format, got both"),
        (lambda folder: File(data=b"", path=folder / "dot.png"), "expected either data or path"),
        (lambda folder: OfAnyData("dot.png", "image/png"), r"got str; a file is path=\.\.\.$"),
        (lambda folder: OfAnyData(3, "image/png"), "data: expected bytes, got int$"),
    ],
)
def test_invalid_images_and_files_are_refused_by_the_constructor(
    make: Any, complaint: str, folder: Path
) -> None:
    with pytest.raises((TypeError, ValueError), match=complaint):
        make(folder)


@pytest.mark.parametrize(
    ("kind", "ending", "mime_type"),
    [
        (Image, "JPG", "image/jpeg"),
        (Image, "unheard", "image/unheard"),
        (Audio, "mp3", "audio/mpeg"),
    ],
)
def test_a_format_names_the_subtype_of_a_kind(
    kind: type[Image | Audio], ending: str, mime_type: str
) -> None:
    media = kind(b"a", format=ending)
    assert (media.mime_type, media.format) == (mime_type, None)


@pytest.mark.parametrize(
    ("options", "mime_type", "is_text"),
    [
        ({"data": b"a", "format": "JSON"}, "application/json", True),
        ({"data": b"a", "name": "a.pict"}, "image/pict", False),
        ({"data": b"a", "mime_type": "application/ld+json; a=b"}, "application/ld+json; a=b", True),
        ({"data": b"\xff", "mime_type": "text/csv"}, "text/csv", False),
        ({"data": b"", "name": "a.txt"}, "text/plain", True),
    ],
)
def test_a_file_is_text_if_its_type_and_bytes_are(
    options: Any, mime_type: str, is_text: bool
) -> None:
    contents = File(**options).resource
    assert (contents.mime_type, contents.text is not None) == (mime_type, is_text)
    assert (contents.blob is None) == is_text


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
