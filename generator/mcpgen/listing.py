"""The list of revisions, and what each has."""

from __future__ import annotations

from mcpgen import facts, methods, normalize, revision_facts, schema
from mcpgen.commands import count_of
from mcpgen.console import Console
from mcpgen.methods import Methods

_HEADS = ("revision", "status", "lifecycle", "transports", "client sends", "server sends", "errata")


def list_revisions(console: Console) -> None:
    """List the revisions and what each has."""
    console.table(_HEADS, [_row(entry) for entry in schema.revisions()])


def _row(entry: schema.RevisionEntry) -> tuple[str, ...]:
    loaded, known = schema.load(entry.name), facts.load(entry.name)
    found = methods.derive(normalize.normalize(loaded, known), known)
    return (
        entry.name,
        entry.status,
        "handshake" if found.handshake else "per request",
        _transports(known.transports),
        _counts(found, "client"),
        _counts(found, "server"),
        str(len(loaded.errata)),
    )


def _transports(found: revision_facts.Transports) -> str:
    names = {
        "stdio": found.stdio,
        "HTTP+SSE": found.http_sse,
        f"HTTP ({found.streamable_http})": found.streamable_http is not None,
    }
    return ", ".join(name for name, has in names.items() if has)


def _counts(found: Methods, sender: methods.Role) -> str:
    requests = len(found.of(sender, "request"))
    notifications = len(found.of(sender, "notification"))
    return f"{count_of(requests, 'request')}, {count_of(notifications, 'notification')}"
