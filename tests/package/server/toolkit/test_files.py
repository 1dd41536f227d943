"""Images, audio and files that a tool reads from paths, and what it says of what it can't send."""

from __future__ import annotations

import base64
import logging
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from kit.wire import ALL
from mcpgen_runtime import Annotations, Audio, File, Image, Server, Text, connect, to_builtins

pytestmark = pytest.mark.on_asyncio

NEWEST, OLDEST = ALL[-1], ALL[0]
two = pytest.mark.parametrize("revision", [OLDEST, NEWEST])


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


def encode_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def returned_content(revision: str, value: Any, annotation: Any) -> list[dict[str, Any]]:
    """The content of the result of a tool that returns a value."""
    server = Server("files")

    def tool() -> Any:
        return value

    tool.__annotations__["return"] = annotation
    server.tool()(tool)
    async with connect(server, revision=revision) as client:
        blocks: list[dict[str, Any]] = to_builtins((await client.call_tool("tool")).content)
        return blocks


PNG = {"type": "image", "data": encode_base64(b"png"), "mimeType": "image/png"}


@pytest.mark.parametrize("annotation", [Image, Any])
@two
async def test_an_image_is_read_from_a_path(revision: str, annotation: Any, folder: Path) -> None:
    for path in (folder / "dot.png", str(folder / "dot.png")):
        assert await returned_content(revision, Image(path=path), annotation) == [PNG]


@pytest.mark.parametrize("annotation", [list[str | Image], tuple[str | Image, ...], list, Any])
async def test_texts_and_images_are_mixed_in_lists_and_tuples(
    annotation: Any, folder: Path
) -> None:
    image = Image(path=folder / "dot.png")
    for value in (["a dot", image], ("a dot", image)):
        content = await returned_content(NEWEST, value, annotation)
        assert content == [{"type": "text", "text": "a dot"}, PNG]


async def test_data_beside_an_image_becomes_its_json(folder: Path) -> None:
    value = [{"a": 1}, Image(path=folder / "dot.png")]
    content = await returned_content(NEWEST, value, Any)
    assert content == [{"type": "text", "text": '{"a":1}'}, PNG]


async def test_audio_and_files_are_read_from_paths(folder: Path) -> None:
    audio = Audio(path=folder / "hum.wav", mime_type="audio/wav")
    text, binary = File(path=folder / "a b.txt"), File(path=folder / "x.bin", name="y.bin")
    made = File(data=b"{}", mime_type="application/json", name="made.json")
    assert await returned_content(NEWEST, [audio, text, binary, made], list[Audio | File]) == [
        {"type": "audio", "data": encode_base64(b"wav"), "mimeType": "audio/wav"},
        resource("a%20b.txt", text="\u00e9", mimeType="text/plain"),
        resource("y.bin", blob=encode_base64(b"\xff"), mimeType="application/octet-stream"),
        resource("made.json", text="{}", mimeType="application/json"),
    ]


def resource(name: str, **more: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": f"file:///{name}", **more}}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: Image(path=folder / "a b.txt"), r"expected image/\*, got text/plain"),
        (lambda folder: Image(b"png", "image/png", path=folder / "dot.png"), "got both"),
        (lambda folder: Image(), "expected type/subtype"),
        (lambda folder: Image(b"a", "image/png", format="png"), "mime_type or format, got both"),
        (
            lambda folder: File(data=b"a", mime_type="text/plain", format="txt"),
            "mime_type or format, got both",
        ),
        (lambda folder: File(), "expected either data or path"),
        (lambda folder: File(data=b"", path=folder / "dot.png"), "expected either data or path"),
    ],
)
def test_invalid_images_and_files_are_refused_by_the_constructor(
    make: Any, said: str, folder: Path
) -> None:
    with pytest.raises(ValueError, match=said):
        make(folder)


@pytest.mark.parametrize(
    ("annotation", "said"),
    [(Text, "content is a str, Text, Image"), (Any, "what has a JSON form is a dict, list")],
)
async def test_the_error_for_what_cannot_be_sent_says_what_can(
    annotation: Any, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        await returned_content(NEWEST, object(), annotation)
    assert said in caplog.text


@pytest.mark.parametrize(
    ("kind", "ending", "mime_type"),
    [
        (Image, "png", "image/png"),
        (Image, ".PNG", "image/png"),
        (Image, "txt", "image/txt"),
        (Image, "unheard", "image/unheard"),
        (Audio, "png", "audio/png"),
    ],
)
def test_a_format_names_the_subtype_of_a_kind(
    kind: type[Image | Audio], ending: str, mime_type: str
) -> None:
    media = kind(b"a", format=ending)
    assert (media.mime_type, media.format) == (mime_type, None)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ("dot.png", r"got str; a file is path=\.\.\.$"),
        (PurePosixPath("dot.png"), r"got PurePosixPath; a file is path=\.\.\.$"),
        (3, "got int$"),
    ],
)
def test_the_data_of_an_image_is_bytes(data: Any, error: str) -> None:
    with pytest.raises(TypeError, match=f"data: expected bytes, {error}"):
        Image(data, "image/png")


@pytest.mark.parametrize(
    ("options", "mime_type", "is_text"),
    [
        ({"data": b"a", "format": "JSON"}, "application/json", True),
        ({"data": b"a", "name": "a.pict"}, "image/pict", False),
        ({"data": b"a", "mime_type": "application/ld+json; a=b"}, "application/ld+json; a=b", True),
        ({"data": b"a", "mime_type": "text/csv"}, "text/csv", True),
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


@pytest.mark.parametrize(
    ("priority", "is_right"), [(0, True), (1, True), (-0.1, False), (2, False)]
)
def test_a_priority_lies_between_0_and_1(priority: float, is_right: bool) -> None:
    if is_right:
        assert Annotations(priority=priority).priority == priority
    else:
        with pytest.raises(ValueError, match="priority: expected a number from 0 to 1"):
            Annotations(priority=priority)
