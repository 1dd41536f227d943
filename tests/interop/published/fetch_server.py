"""The tool and the prompt of PyPI's mcp-server-fetch on the generated package."""

from __future__ import annotations

import argparse
import ipaddress
import socket
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urljoin

import anyio
import httpx2
from markdownify import ATX, markdownify
from protego import Protego
from pydantic import AnyUrl, Field
from readabilipy.simple_json import (  # type: ignore[import-untyped] # it has no types
    simple_json_from_html_string,
)

from mcpgen_runtime import Server, ToolAnnotations, ToolError

READS_THE_WEB = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=True
)
FAILED = "<error>Page failed to be simplified from HTML</error>"
NO_MORE = "<error>No more content available.</error>"

Length = Annotated[int, Field(ge=1, le=999_999, strict=True, description="characters at most")]
Start = Annotated[int, Field(ge=0, strict=True, description="the first character, to read on")]
Raw = Annotated[bool, Field(strict=True, description="the page as it is, not as markdown")]


def markdown(html: str) -> str:
    content = simple_json_from_html_string(html, use_readability=True)["content"]
    text = markdownify(content, heading_style=ATX) if content else ""
    return text if text.strip() else FAILED


@dataclass
class Web:
    """Settings of the command line."""

    user_agent: str
    ignore_robots_txt: bool
    proxy_url: str | None
    allow_private_ips: bool

    def client(self) -> httpx2.AsyncClient:
        hooks = [] if self.allow_private_ips else [refuse_private]
        return httpx2.AsyncClient(
            headers={"User-Agent": self.user_agent},
            proxy=self.proxy_url,
            follow_redirects=True,
            timeout=30,
            event_hooks={"request": hooks},
        )

    async def check_robots(self, url: str) -> None:
        robots = urljoin(url, "/robots.txt")
        async with self.client() as client:
            try:
                response = await client.get(robots)
            except httpx2.HTTPError as error:
                raise ToolError(f"Failed to fetch robots.txt {robots}: {error}") from error
        if response.status_code in (401, 403):
            raise ToolError(f"{robots} is refused: the user can fetch by the prompt instead")
        if 400 <= response.status_code < 500:
            return
        if not Protego.parse(response.text).can_fetch(url, self.user_agent):
            raise ToolError(f"{robots} disallows {url}: the user can fetch by the prompt instead")

    async def page(self, url: str, *, raw: bool = False) -> tuple[str, str]:
        """A prefix that says what it is, and the page."""
        async with self.client() as client:
            try:
                response = await client.get(url)
            except httpx2.HTTPError as error:
                raise ToolError(f"Failed to fetch {url}: {error!r}") from error
        if response.is_error:
            raise ToolError(f"Failed to fetch {url} - status code {response.status_code}")
        kind = response.headers.get("content-type", "")
        is_html = "<html" in response.text[:100] or "text/html" in kind or not kind
        if is_html and not raw:
            return "", markdown(response.text)
        note = f"Content type {kind} cannot be simplified to markdown, but here is the raw content:"
        return f"{note}\n", response.text


async def refuse_private(request: httpx2.Request) -> None:
    host = request.url.raw_host.decode("ascii")
    try:
        addresses = await anyio.getaddrinfo(host, None)
    except socket.gaierror:
        return  # a proxy may know the name
    for *_, address in addresses:
        if not ipaddress.ip_address(address[0]).is_global:
            raise ToolError(f"Refused to fetch {request.url}: {host} is no public address")


def part(text: str, start: int, length: int) -> str:
    if start >= len(text):
        return NO_MORE
    shown = text[start : start + length]
    end = start + len(shown)
    if end == len(text):
        return shown
    more = f"Call the fetch tool with a start_index of {end} to get more content."
    return f"{shown}\n\n<error>Content truncated. {more}</error>"


def create_server(web: Web) -> Server:
    server = Server("mcp-fetch", version="1.0")

    @server.tool(structured=False, annotations=READS_THE_WEB)
    async def fetch(
        url: Annotated[AnyUrl, Field(description="the address of a page")],
        max_length: Length = 5000,
        start_index: Start = 0,
        raw: Raw = False,
    ) -> str:
        """A page of the internet, as markdown unless it is wanted raw."""
        if not web.ignore_robots_txt:
            await web.check_robots(str(url))
        prefix, text = await web.page(str(url), raw=raw)
        return f"{prefix}Contents of {url}:\n{part(text, start_index, max_length)}"

    @server.prompt("fetch")
    async def fetch_prompt(
        url: Annotated[str, Field(description="the address of a page")],
    ) -> str:
        """A page that the user wants to be read."""
        try:
            return "".join(await web.page(url))
        except ToolError as error:
            return str(error)

    return server


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--user-agent", default="ported-fetch/1.0")
    parser.add_argument("--ignore-robots-txt", action="store_true")
    parser.add_argument("--proxy-url")
    parser.add_argument("--allow-private-ips", action="store_true")
    create_server(Web(**vars(parser.parse_args()))).run()
