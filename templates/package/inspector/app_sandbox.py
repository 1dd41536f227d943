"""Sandboxes for user interfaces of tools (MCP Apps): pages of another origin.

    http://127.0.0.1:PORT/                 the page of the inspector, which has the token
    http://localhost:PORT/sandbox/KEY      the sandbox of one document, under the document's policy
        about:srcdoc                       the document: scripts alone, with an opaque origin

The sandbox passes messages between page and document. The document inherits the policy of the
sandbox, so it can reach only the origins that its server declared, and neither page nor token.

Source: ext-apps/specification/2026-01-26/apps (sandbox proxy).
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from pathlib import Path

from ..apps import UiResource

PATH = "/sandbox/"
KEPT = 100
"""Most documents whose sandboxes can be opened; the oldest are removed."""


class AppSandbox:
    """The sandboxes of documents."""

    def __init__(self) -> None:
        self._policies: OrderedDict[str, str] = OrderedDict()

    def add(self, document: UiResource) -> str:
        """Add a sandbox for a document, and return its path."""
        key = secrets.token_urlsafe(24)
        self._policies[key] = document.csp.policy
        while len(self._policies) > KEPT:
            self._policies.popitem(last=False)
        return PATH + key

    def policy(self, path: str) -> str | None:
        """The Content-Security-Policy of the sandbox at a path; `None` without a sandbox."""
        return self._policies.get(path.removeprefix(PATH))


def sandbox_page(host: str) -> str:
    """The page of a sandbox that accepts messages of one origin."""
    text = Path(__file__).with_name("sandbox.html").read_text(encoding="utf-8")
    return text.replace("{{host}}", host)
