"""The server library: its tools, resources and prompts."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from .database import Book, Catalogue
from .protocol import Context, ResourceNotFoundError, Server, ToolError


@dataclass
class Borrower:
    """The answer of the user."""

    name: Annotated[str, Meta(min_length=1)]


@asynccontextmanager
async def lifespan(server: Server) -> AsyncGenerator[Catalogue]:
    """Open the database."""
    yield Catalogue(Path(os.environ.get("LIBRARY_DB", Path.home() / "library.db")))


server = Server("library", version="0.1.0", lifespan=lifespan)


@server.tool()
def check_isbn(isbn: str) -> str:
    """Check the ISBN of a book, and return its digits.

    Args:
        isbn: 13 digits, with or without hyphens.
    """
    digits = isbn.replace("-", "")
    if len(digits) != 13 or not digits.isdecimal():
        raise ToolError(f"expected an ISBN of 13 digits, got {isbn!r}")
    if sum(int(digit) * (1, 3)[place % 2] for place, digit in enumerate(digits)) % 10:
        raise ToolError(f"the check digit of {isbn!r} does not fit the other digits")
    return digits


@server.tool()
def find_books(words: str, ctx: Context[Catalogue]) -> list[Book]:
    """Find books.

    Args:
        words: A part of the title or of the author's name.
    """
    return ctx.state.find(words)


@server.resource("library://books", mime_type="application/json")
def books(ctx: Context[Catalogue]) -> list[Book]:
    """All books of the library."""
    return ctx.state.find()


@server.resource("library://books/{isbn}", mime_type="application/json")
def one_book(isbn: str, ctx: Context[Catalogue]) -> Book:
    """A book, by the 13 digits of its ISBN."""
    book = ctx.state.get(isbn)
    if book is None:
        raise ResourceNotFoundError(f"library://books/{isbn}")
    return book


@server.prompt()
def recommend(mood: str, count: int = 1) -> str:
    """Ask for books that fit a mood.

    Args:
        mood: How you feel.
        count: How many books to recommend.
    """
    return f"I feel {mood}. Recommend {count} of the library's books, and say why."


@server.tool()
async def lend_book(isbn: str, ctx: Context[Catalogue]) -> str:
    """Lend a book. The user is asked for a name.

    Args:
        isbn: The ISBN of the book, as find_books returns it.
    """
    book = ctx.state.get(isbn)
    if book is None:
        raise ToolError(f"no book has the ISBN {isbn!r}; find_books lists them")
    answer = await ctx.elicit(f"Who borrows {book.title}?", Borrower)
    if answer.action != "accept":
        return "nothing was lent"
    if not ctx.state.lend(isbn, answer.content.name):
        raise ToolError(f"{book.title} is lent already")
    return f"{answer.content.name} borrows {book.title}"
