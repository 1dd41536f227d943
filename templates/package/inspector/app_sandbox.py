"""Sandboxes of user interfaces of tools (MCP Apps), each a page of another origin.

    http://127.0.0.1:PORT/                 the page of the inspector, which has the token
    http://localhost:PORT/sandbox/KEY      the sandbox of one document, under the document's policy
        about:srcdoc                       the document: scripts alone, with an origin of no one

The sandbox passes messages on between page and document. The document inherits the policy of the
sandbox, so that it reaches no other origin than its server declared, and neither page nor token.

Source: ext-apps/specification/2026-01-26/apps (sandbox proxy).
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from pathlib import Path

from ..apps import UiResource

PATH = "/sandbox/"
KEPT = 100
"""Documents whose sandboxes can be opened; the oldest are forgotten."""


class AppSandbox:
    """The sandboxes of documents."""

    def __init__(self) -> None:
        self._policies: OrderedDict[str, str] = OrderedDict()

    def add(self, document: UiResource) -> str:
        """The path of a sandbox for a document."""
        key = secrets.token_urlsafe(24)
        self._policies[key] = document.csp.policy
        while len(self._policies) > KEPT:
            self._policies.popitem(last=False)
        return PATH + key

    def policy(self, path: str) -> str | None:
        """The Content-Security-Policy of the sandbox with a path; `None` if there is none."""
        return self._policies.get(path.removeprefix(PATH))


def sandbox_page(host: str) -> str:
    """The page of every sandbox, for messages of one origin."""
    text = Path(__file__).with_name("sandbox.html").read_text(encoding="utf-8")
    return text.replace("{{host}}", host)
