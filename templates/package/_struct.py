"""The base of the message models."""

from __future__ import annotations

import msgspec


class Struct(msgspec.Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """An object of the protocol: members that are absent are neither sent nor shown."""
