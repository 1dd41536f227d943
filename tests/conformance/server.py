"""The server under test, written as a user would: `python -m tests.conformance.server`."""

from __future__ import annotations

import argparse
import base64
import io
import json
import wave
from typing import Annotated

import anyio
from msgspec import Meta

from mcpgen_runtime import (
    Audio,
    Contents,
    Context,
    EmbeddedResource,
    Image,
    Message,
    Server,
    ToolError,
)

from . import asking

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
RICH_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "address", "type": "string", "minLength": 1}},
    "properties": {
        "by": {"enum": ["mail", "hand"]},
        "to": {"$ref": "#/$defs/address"},
        "stamp": {"type": "integer"},
        "bearer": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["by"]}, {"required": ["to"]}]}],
    "if": {"properties": {"by": {"const": "mail"}}, "required": ["by"]},
    "then": {"required": ["stamp"]},
    "else": {"required": ["bearer"]},
    "additionalProperties": False,
}

server = Server("conformance", version="1.0", subscribe=True)


@server.tool()
async def test_simple_text() -> str:
    """Answers with a line of text."""
    return "A line of text."


@server.tool()
async def test_image_content() -> Image:
    """Answers with a picture of one pixel."""
    return Image(data=PIXEL, mime_type="image/png")


@server.tool()
async def test_audio_content() -> Audio:
    """Answers with a moment of silence."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(16))
    return Audio(data=file.getvalue(), mime_type="audio/wav")


@server.tool()
async def test_embedded_resource() -> EmbeddedResource:
    """Answers with a resource."""
    text = "A resource inside a result."
    return EmbeddedResource(resource=Contents("test://embedded-resource", text))


@server.tool()
async def test_multiple_content_types() -> list[str | Image | EmbeddedResource]:
    """Answers with text, a picture and a resource."""
    data = json.dumps({"answer": 42})
    contents = Contents("test://mixed-content-resource", data, mime_type="application/json")
    return [
        "Text, a picture and a resource:",
        Image(data=PIXEL, mime_type="image/png"),
        EmbeddedResource(resource=contents),
    ]


@server.tool()
async def test_tool_with_logging(ctx: Context) -> str:
    """Logs its beginning, middle and end."""
    await ctx.info("begun")
    await anyio.sleep(0.05)
    await ctx.info("half done")
    await anyio.sleep(0.05)
    await ctx.info("done")
    return "logged"


@server.tool()
async def test_logging_tool(ctx: Context) -> str:
    """Logs a line, which reaches only clients that asked for it."""
    await ctx.info("test_logging_tool was called")
    return "logged"


@server.tool()
async def test_tool_with_progress(ctx: Context) -> str:
    """Reports how far it is."""
    for done in (0, 50, 100):
        await ctx.progress(done, total=100)
        await anyio.sleep(0.05)
    return "all of it"


@server.tool()
async def test_error_handling() -> str:
    """Fails on every call."""
    raise ToolError("out of order")


@server.tool()
async def test_reconnection(ctx: Context) -> str:
    """Closes the stream before it has its answer, so that the client comes back for it."""
    await ctx.close_stream()
    await anyio.sleep(0.1)
    return "welcome back"


@server.tool()
async def test_mirrored_region(
    region: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})],
) -> str:
    """Takes an argument that HTTP clients mirror into a header."""
    return f"the region is {region}"


@server.tool(input_schema=RICH_SCHEMA)
async def json_schema_2020_12_tool(**arguments: object) -> str:
    """Takes arguments by a schema that no signature can express."""
    return json.dumps(arguments)


@server.tool()
async def test_trigger_tool_change() -> str:
    """Adds a tool, or takes it away again."""
    try:
        server.remove_tool("test_dynamic_tool")
    except LookupError:
        server.tool("test_dynamic_tool", description="Comes and goes.")(test_simple_text)
        return "added"
    return "removed"


@server.tool()
async def test_trigger_prompt_change() -> str:
    """Adds a prompt, or takes it away again."""
    try:
        server.remove_prompt("test_dynamic_prompt")
    except LookupError:
        server.prompt("test_dynamic_prompt", description="Comes and goes.")(test_simple_prompt)
        return "added"
    return "removed"


@server.resource("test://static-text", mime_type="text/plain")
async def static_text() -> str:
    """A text that stays the same."""
    return "Always the same."


@server.resource("test://static-binary", mime_type="image/png")
async def static_binary() -> bytes:
    """A picture of one pixel."""
    return PIXEL


@server.resource("test://watched-resource", mime_type="text/plain")
async def watched_resource() -> str:
    """A text to subscribe to."""
    return "Worth watching."


@server.resource("test://template/{id}/data", name="template", mime_type="application/json")
async def template_data(id: str) -> str:
    """Data by id."""
    return json.dumps({"id": id})


@server.prompt()
async def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "Say hello."


@server.prompt()
async def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with two arguments."""
    return f"Compare {arg1} with {arg2}."


@server.prompt()
async def test_prompt_with_embedded_resource(
    resourceUri: str,  # noqa: N803 - its name on the wire
) -> list[Message]:
    """A prompt that quotes a resource."""
    contents = Contents(resourceUri, "Something to read.")
    return [
        Message("user", EmbeddedResource(resource=contents)),
        Message("user", "Sum it up."),
    ]


@server.prompt()
async def test_prompt_with_image() -> list[Message]:
    """A prompt that shows a picture."""
    return [
        Message("user", Image(data=PIXEL, mime_type="image/png")),
        Message("user", "Describe it."),
    ]


@server.completion(prompt="test_prompt_with_arguments", argument="arg1")
async def complete_arg1(value: str) -> list[str]:
    return [word for word in ("oslo", "ostrava", "porto") if word.startswith(value)]


for function in asking.TOOLS:
    server.tool()(function)
server.prompt()(asking.test_input_required_result_prompt)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0, the default, is any free one")
    parser.add_argument("--answers", choices=("auto", "json", "sse"), default="auto")
    chosen = parser.parse_args()
    server.run(http=f"127.0.0.1:{chosen.port}", answers=chosen.answers)
