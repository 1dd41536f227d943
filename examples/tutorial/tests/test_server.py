"""The server library, called by a client in the same process."""

from __future__ import annotations

from typing import Any

import pytest

from library.database import Book
from library.protocol import REVISIONS, ClientHandlers, RemoteError, ToolFailedError
from library.protocol.testing import connected
from library.server import server

pytestmark = pytest.mark.anyio
DUNE = "9780441172719"


class Ann(ClientHandlers):
    """A user who fills in each form."""

    async def elicit(self, params: Any, ctx: Any) -> Any:
        return {"action": "accept", "content": {"name": "Ann"}}


class Nobody(ClientHandlers):
    """A user who declines."""

    async def elicit(self, params: Any, ctx: Any) -> Any:
        return {"action": "decline"}


async def test_an_isbn_is_checked() -> None:
    async with connected(server) as pair:
        digits = await pair.client.call_tool("check_isbn", {"isbn": "978-0441172719"}, returns=str)
        assert digits == DUNE
        with pytest.raises(ToolFailedError, match="check digit"):
            await pair.client.call_tool("check_isbn", {"isbn": "9780441172718"}, returns=str)


async def test_books_have_the_words() -> None:
    async with connected(server) as pair:
        books = await pair.client.call_tool("find_books", {"words": "austen"}, returns=list[Book])
        assert [book.title for book in books] == ["Emma"]


async def test_a_book_that_does_not_exist_is_an_error_of_the_protocol() -> None:
    async with connected(server) as pair:
        with pytest.raises(RemoteError):
            await pair.client.read_resource("library://books/9780000000000")


async def test_the_prompt_has_the_mood() -> None:
    async with connected(server) as pair:
        prompt = await pair.client.get_prompt("recommend", {"mood": "calm", "count": "2"})
        assert "I feel calm. Recommend 2" in str(prompt.messages[0].content)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_book_is_lent_once(revision: str) -> None:
    async with connected(server, revision=revision, handlers=Ann()) as pair:
        lent = await pair.client.call_tool("lend_book", {"isbn": DUNE}, returns=str)
        assert lent == "Ann borrows Dune"
        again = await pair.client.call_tool("lend_book", {"isbn": DUNE})
        assert again.is_error


@pytest.mark.parametrize("revision", REVISIONS)
async def test_nothing_is_lent_to_nobody(revision: str) -> None:
    async with connected(server, revision=revision, handlers=Nobody()) as pair:
        answer = await pair.client.call_tool("lend_book", {"isbn": DUNE}, returns=str)
        assert answer == "nothing was lent"
