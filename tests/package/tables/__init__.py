"""Tables of tests that are JSON in any case: schemas, OpenAPI documents, and answers of servers."""

from __future__ import annotations

from functools import partial

from kit.tables import read_table

table = partial(read_table, "package")
