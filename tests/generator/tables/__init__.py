"""Tables of tests that are JSON in any case: schemas, lists of servers, messages, and programs."""

from __future__ import annotations

from functools import partial

from kit.tables import read_table

table = partial(read_table, "generator")
