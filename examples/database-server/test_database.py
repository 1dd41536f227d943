"""The server's tools and resources, called in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

from database import Page, make_server
from library import make_library
from pkg import RemoteError, Server, convert, models

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def server(tmp_path: Path) -> Server:
    make_library(f"{tmp_path}/library.db")
    return make_server(tmp_path / "library.db")


async def test_pages_follow_each_other(server: Server) -> None:
    titles: list[object] = []
    offset: int | None = 0
    while offset is not None:
        sql = "SELECT title FROM books ORDER BY year"
        result = await server.call_tool("query", {"sql": sql, "offset": offset, "limit": 2})
        page = convert(result.structured_content, Page)
        titles += [title for (title,) in page.rows]
        offset = page.next_offset
    assert titles[0] == "Sense and Sensibility"
    assert len(titles) == 5


@pytest.mark.parametrize(
    "sql", ["DELETE FROM books", "ATTACH 'other.db' AS other", "PRAGMA query_only = 0", "SELEC 1"]
)
async def test_a_statement_that_does_not_read_is_refused(server: Server, sql: str) -> None:
    result = await server.call_tool("query", {"sql": sql})
    assert result.is_error


async def test_the_schema_is_a_resource(server: Server) -> None:
    schema = await server.read_resource("db://tables/authors")
    (contents,) = schema.contents
    assert isinstance(contents, models.TextResourceContents)
    assert "name TEXT NOT NULL" in contents.text
    with pytest.raises(RemoteError):
        await server.read_resource("db://tables/readers")
