"""Serves an SQLite database to a model, which reads it and can't change it.

python database.py library.db
"""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, TypeAlias

from msgspec import Meta

from pkg import ResourceNotFoundError, Server, ToolAnnotations, ToolError

SECONDS = 5.0
"""A query may take so long."""

INSTRUCTIONS = "Read db://schema first, then query in the SQL of SQLite."
READING = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    }
)

Value: TypeAlias = str | int | float | None
Offset: TypeAlias = Annotated[int, Meta(ge=0, description="Rows to skip: next_offset of a page")]
Limit: TypeAlias = Annotated[int, Meta(ge=1, le=200, description="Rows of a page at most")]


@dataclass
class Page:
    """Some rows of a result; `next_offset` is None after the last one."""

    columns: list[str]
    rows: list[list[Value]]
    next_offset: int | None


def make_server(database: Path) -> Server:
    """A server of the database in a file."""
    server = Server("database", version="1.0", instructions=INSTRUCTIONS)

    @server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
    def query(sql: str, offset: Offset = 0, limit: Limit = 50) -> Page:
        """Run a SELECT and return a page of its rows."""
        try:
            with read_only(database) as connection:
                cursor = connection.execute(sql)
                columns = [column[0] for column in cursor.description or ()]
                rows = list(islice(cursor, offset, offset + limit + 1))
        except sqlite3.Error as error:
            raise ToolError(f"SQLite: {error}") from error
        following = offset + limit if len(rows) > limit else None
        return Page(columns, [list(map(as_json, row)) for row in rows[:limit]], following)

    @server.resource("db://schema", mime_type="application/sql")
    def schema() -> str:
        """The statements that made the tables."""
        with read_only(database) as connection:
            rows = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
            return "\n".join(f"{statement};" for (statement,) in rows)

    @server.resource("db://tables/{table}", mime_type="application/sql")
    def table_schema(table: str) -> str:
        """The statement that made one table."""
        with read_only(database) as connection:
            statement = "SELECT sql FROM sqlite_schema WHERE name = ? AND sql IS NOT NULL"
            row: tuple[str] | None = connection.execute(statement, [table]).fetchone()
        if row is None:
            raise ResourceNotFoundError(f"db://tables/{table}")
        return row[0]

    return server


@contextmanager
def read_only(database: Path) -> Generator[sqlite3.Connection]:
    """A connection that reads this database and no other file, for `SECONDS` at most."""
    deadline = time.monotonic() + SECONDS
    with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        connection.set_authorizer(authorize)
        connection.set_progress_handler(lambda: time.monotonic() > deadline, 1000)
        yield connection


def authorize(action: int, *_: str | None) -> int:
    """Whether SQLite may do something that a statement asks for."""
    return sqlite3.SQLITE_OK if action in READING else sqlite3.SQLITE_DENY


def as_json(value: Value | bytes) -> Value:
    """A value as JSON has it; bytes are described."""
    return f"<{len(value)} bytes>" if isinstance(value, bytes) else value


if __name__ == "__main__":
    make_server(Path(sys.argv[1])).run()
