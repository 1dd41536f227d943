"""Changes between two revisions of the protocol, in terms of the protocol.

`load` reads two revisions or schema files, `compare` gives the changes from one to another.
Schemas are compared by the values that they allow, so two ways to write the same schema show no
changes.
"""

from __future__ import annotations

from mcpgen.diff.changes import Change, Message
from mcpgen.diff.compare import Diff, compare
from mcpgen.diff.protocol import Protocol, load, of_schema
from mcpgen.diff.rules import RULES, Rule, severities

__all__ = [
    "RULES",
    "Change",
    "Diff",
    "Message",
    "Protocol",
    "Rule",
    "compare",
    "load",
    "of_schema",
    "severities",
]
