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
from collections.abc import Mapping
from pathlib import Path

from ..apps import UiResource

PATH = "/sandbox/"
KEPT = 100
"""Most documents whose sandboxes can be opened; the oldest are removed."""


class AppSandbox:
    """The sandboxes of documents."""

    def __init__(self) -> None:
        self._documents: OrderedDict[str, UiResource] = OrderedDict()

    def add(self, document: UiResource) -> str:
        """Add a sandbox for a document, and return its path."""
        key = secrets.token_urlsafe(24)
        self._documents[key] = document
        while len(self._documents) > KEPT:
            self._documents.popitem(last=False)
        return PATH + key

    def fields(self, path: str, host: str) -> Mapping[str, str] | None:
        """The header fields of the sandbox at a path, in a page of an origin.

        No directive of Content-Security-Policy keeps WebRTC from sending to any address;
        Connection-Allowlist does, in browsers that know it.

        Returns:
            `None` without a sandbox.
        """
        document = self._documents.get(path.removeprefix(PATH))
        if document is None:
            return None
        origins = dict.fromkeys(each for kind in vars(document.csp).values() for each in kind)
        patterns = " ".join(["response-origin", *(f'"{origin}/*"' for origin in origins)])
        return {
            "Content-Security-Policy": f"{document.csp.policy}; frame-ancestors {host}",
            "Connection-Allowlist": f"({patterns})",
        }


def sandbox_page(host: str) -> str:
    """The page of a sandbox that accepts messages of one origin."""
    text = Path(__file__).with_name("sandbox.html").read_text(encoding="utf-8")
    return text.replace("{{host}}", host)
