"""The tables of all rules."""

from __future__ import annotations

from generator.check_server import features, http, protocol

RULES = {rule.id: rule for area in (protocol, features, http) for rule in area.RULES}
"""Every rule by its id."""
