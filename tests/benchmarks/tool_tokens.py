"""Tokens that the tools of a server take in a request to a model: 300 tools, listed and searched.

    pip install bpe-openai && python -m benchmarks.tool_tokens

Counted are the tools as OpenAI's API takes them, as compact JSON, by the encoding `o200k_base`.
Providers write them in another form, so that ratios say more than counts.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from mcpgen_runtime import Server, connect

SERVICES = (
    *("invoice", "customer", "order", "ticket", "project", "branch", "release", "deployment"),
    *("alert", "dashboard", "calendar", "meeting", "document", "folder", "message", "channel"),
    *("employee", "payroll", "contract", "supplier", "product", "warehouse", "shipment", "vehicle"),
    *("sensor", "certificate", "domain", "database", "backup", "report"),
)
ACTIONS = {
    "list": "Lists the {0}s that match a filter, the newest first.",
    "get": "Reads one {0} with all of its fields.",
    "create": "Creates a {0}, and returns it with its id.",
    "update": "Changes fields of a {0}; the others stay as they are.",
    "delete": "Removes a {0} for good.",
    "archive": "Hides a {0} from lists, without removing it.",
    "assign": "Makes a person responsible for a {0}.",
    "comment": "Adds a comment to a {0}, which its followers are told of.",
    "export": "Writes {0}s to a file of comma-separated values.",
    "history": "Lists the changes of a {0}: who, when and what.",
}


@dataclass
class Filter:
    """Criteria that select items."""

    text: str = ""
    owner: str | None = None
    since: str | None = None


def server_of_many(**settings: Any) -> Server:
    """A server with 300 tools of four arguments."""
    server = Server("many", **settings)

    async def act(
        id: Annotated[str, msgspec.Meta(description="Identifier, as lists give it.")],
        where: Annotated[Filter | None, msgspec.Meta(description="Only these.")] = None,
        fields: Annotated[list[str] | None, msgspec.Meta(description="Fields to return.")] = None,
        limit: Annotated[int, msgspec.Meta(ge=1, le=100, description="Most items.")] = 20,
    ) -> str:
        return id

    for service in SERVICES:
        for action, text in ACTIONS.items():
            server.add_tool(act, name=f"{service}_{action}", description=text.format(service))
    return server


async def collect_texts() -> dict[str, str]:
    """The texts to count."""
    texts: dict[str, str] = {}
    for form in ("refs", "inline"):
        async with connect(server_of_many(schemas=form)) as client:
            texts[f"300 tools, {form}"] = json.dumps(await client.tools_for("openai"))
            if form == "inline":
                deferred = await client.tools_for("openai", defer=True)
                seen = ("type", "name", "description")
                texts["300 deferred tools"] = json.dumps(
                    [{key: tool[key] for key in seen if key in tool} for tool in deferred]
                )
    async with connect(server_of_many(discovery="search")) as client:
        texts["search_tools and call_tool"] = json.dumps(await client.tools_for("openai"))
        result = await client.call_tool("search_tools", {"query": "create an invoice"})
        texts["the result of a search"] = result.content[0].text
    return {
        name: json.dumps(json.loads(text), separators=(",", ":")) for name, text in texts.items()
    }


def main() -> None:
    encoding = importlib.import_module("bpe_openai").get_encoding("o200k_base")
    for name, text in asyncio.run(collect_texts()).items():
        print(f"{name}: {len(encoding.encode(text)):,} tokens, {len(text):,} characters")


if __name__ == "__main__":
    main()
