"""The books of the library, in a file of SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

TABLE = """
create table if not exists books (
    isbn text primary key, title text, author text, year integer, lent_to text)
"""
FIRST_BOOKS = [
    ("9780441172719", "Dune", "Frank Herbert", 1965),
    ("9780141439587", "Emma", "Jane Austen", 1815),
    ("9780553380958", "Snow Crash", "Neal Stephenson", 1992),
]


@dataclass
class Book:
    """A row of the table."""

    isbn: str
    title: str
    author: str
    year: int
    lent_to: str | None


class Catalogue:
    """The table of books. Each query opens the file anew, so any thread may call."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self.connected() as database:
            database.execute(TABLE)
            insert = "insert or ignore into books values (?, ?, ?, ?, null)"
            database.executemany(insert, FIRST_BOOKS)

    @contextmanager
    def connected(self) -> Generator[sqlite3.Connection]:
        """A connection that commits at its end."""
        with closing(sqlite3.connect(self.path)) as database, database:
            yield database

    def find(self, words: str = "") -> list[Book]:
        """The books whose title or author contains these words."""
        query = "select * from books where title like ? or author like ? order by title"
        with self.connected() as database:
            rows = database.execute(query, (f"%{words}%",) * 2)
            return [Book(*row) for row in rows]

    def get(self, isbn: str) -> Book | None:
        """The book with this ISBN."""
        with self.connected() as database:
            row = database.execute("select * from books where isbn = ?", (isbn,)).fetchone()
            return Book(*row) if row else None

    def lend(self, isbn: str, name: str) -> bool:
        """Lend a book; false if it is lent already."""
        update = "update books set lent_to = ? where isbn = ? and lent_to is null"
        with self.connected() as database:
            return database.execute(update, (name, isbn)).rowcount == 1
