"""Makes the database of the example: `python library.py library.db`."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing

SCRIPT = """
CREATE TABLE authors (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE books (
    id INTEGER PRIMARY KEY,
    title TEXT NOT NULL,
    year INTEGER,
    author INTEGER NOT NULL REFERENCES authors (id)
);
INSERT INTO authors VALUES (1, 'Jane Austen'), (2, 'Frank Herbert');
INSERT INTO books VALUES
    (1, 'Sense and Sensibility', 1811, 1),
    (2, 'Pride and Prejudice', 1813, 1),
    (3, 'Emma', 1815, 1),
    (4, 'Dune', 1965, 2),
    (5, 'Dune Messiah', 1969, 2);
"""


def make_library(path: str) -> None:
    """Create the database in a new file."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCRIPT)


if __name__ == "__main__":
    make_library(sys.argv[1])
