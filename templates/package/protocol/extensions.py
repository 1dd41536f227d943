"""Extensions: optional additions to the protocol that hold where both sides declare them.

They are declared among the capabilities, under identifiers that have the form of `_meta` keys, each
with an object of settings.

Source: basic/versioning#extension-negotiation (2026-07-28).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from .._wire import is_object
from ..foreign_text import safe_repr
from ..revision_facts import Facts
from .meta_keys import is_reserved_key, is_valid_key

CAPABILITY = "extensions"

OFFICIAL_PREFIX = "io.modelcontextprotocol/"
OFFICIAL = frozenset(
    {
        f"{OFFICIAL_PREFIX}enterprise-managed-authorization",
        f"{OFFICIAL_PREFIX}oauth-client-credentials",
        f"{OFFICIAL_PREFIX}tasks",
        f"{OFFICIAL_PREFIX}ui",
    }
)
"""The extensions that the specification's own organization had published when this was written."""

_logger = logging.getLogger(__name__)


def check_extensions(capabilities: Mapping[str, Any], facts: Facts) -> None:
    """Check the extensions that a side is about to declare.

    Raises:
        ValueError: An identifier has no valid form, or a prefix that is kept for the
            protocol; or its settings are no object.
    """
    declared = capabilities.get(CAPABILITY, {})
    if not is_object(declared):
        raise ValueError(f"capabilities.extensions: expected an object, got {safe_repr(declared)}")
    for identifier, settings in declared.items():
        if "/" not in identifier or identifier.endswith("/") or not is_valid_key(identifier):
            raise ValueError(f"extension {identifier!r}: expected a dotted prefix, '/' and a name")
        if not is_object(settings):
            raise ValueError(
                f"extension {identifier!r}: expected an object of settings, "
                f"got {safe_repr(settings)}"
            )
        if is_reserved_key(identifier, facts) and identifier not in OFFICIAL:
            if not identifier.startswith(OFFICIAL_PREFIX):
                raise ValueError(
                    f"extension {identifier!r}: its prefix is reserved for the protocol"
                )
            _logger.warning("extension %r is no official one that is known here", identifier)


def settings_of(capabilities: Mapping[str, Any], identifier: str) -> Mapping[str, Any] | None:
    """The settings by which a side declares an extension; `None` if it does not."""
    declared = capabilities.get(CAPABILITY)
    settings = declared.get(identifier) if is_object(declared) else None
    return settings if is_object(settings) else None
