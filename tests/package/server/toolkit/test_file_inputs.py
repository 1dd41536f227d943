"""Files in arguments: the schema, what is accepted, and what is refused with which text."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import pytest

from mcpgen_runtime import FileInput, Server
from mcpgen_runtime.testing import connected

DATA = base64.b64encode(b"1234").decode()


class Picture(FileInput, accept=["image/png", "Image/J*", "image/jpeg"], max_size=4):
    pass


class Report(FileInput, accept=[".pdf", "text/plain"]):
    pass


def server() -> Server:
    made = Server("files")

    @made.tool()
    def sizes(
        picture: Picture,
        any_file: FileInput | None = None,
        report: Report | None = None,
        data: bytes = b"",
    ) -> list[str]:
        files = [picture, any_file, report]
        return [f"{file.media_type} {len(file)}" for file in files if file is not None]

    @made.tool()
    def same(file: FileInput) -> FileInput:
        assert file == b"ab"
        return FileInput(file, file.media_type)

    return made


async def test_the_schema_says_which_files_are_accepted() -> None:
    async with connected(server()) as pair:
        client: Any = pair.client
        tool, _ = await client.list_tools()
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
    async with connected(server()) as pair:
        client: Any = pair.client
        result = await client.call_tool("sizes", arguments)
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
    async with connected(server()) as pair:
        client: Any = pair.client
        result = await client.call_tool("sizes", {"picture": picture})
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
    async with connected(server()) as pair:
        result: Any = await pair.client.call_tool("same", {"file": "data:a/b,ab"})
    assert result.structured_content == {"result": "data:a/b;base64,YWI="}
    assert isinstance(FileInput(b""), bytes)
    assert not isinstance(b"", FileInput)
