"""A model that costs nothing: it speaks the Messages API, and follows a plan of three calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

Block: TypeAlias = dict[str, Any]
Message: TypeAlias = dict[str, Any]


class FakeModel:
    """Takes the place of `AsyncAnthropic().messages`.

    Replace it by `(await client.messages.create(model=..., max_tokens=..., messages=messages,
    tools=tools)).content`, with blocks as dictionaries by `block.model_dump()`.
    """

    async def create(self, messages: Sequence[Message], tools: Sequence[Block]) -> list[Block]:
        """The blocks of the model's next message."""
        results = [text_of(message) for message in messages if is_result(message)]
        match results:
            case []:
                return [call(tools, "calendar_next_trip", {})]
            case [city]:
                return [call(tools, "weather_forecast", {"city": city})]
            case [city, weather]:
                text = f"Pack for {weather} in {city}"
                return [call(tools, "notes_save", {"text": text})]
            case _:
                noted = "nothing" if "refused" in results[-1] else "what to pack for your next trip"
                return [{"type": "text", "text": f"I noted {noted}."}]


def is_result(message: Message) -> bool:
    """Whether a message has the result of a tool."""
    return bool(message["content"][0]["type"] == "tool_result")


def text_of(message: Message) -> str:
    """The text of the first result in a message."""
    content = message["content"][0]["content"]
    return content if isinstance(content, str) else str(content[0]["text"])


def call(tools: Sequence[Block], name: str, arguments: dict[str, Any]) -> Block:
    """A block that asks for a tool, which has to be among those that the model was given."""
    if name not in {tool["name"] for tool in tools}:
        raise LookupError(f"no tool {name}; there are {[tool['name'] for tool in tools]}")
    return {"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": arguments}
