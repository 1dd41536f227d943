"""Validation against JSON Schemas that arrive as data: written by a user, or listed by a server."""

from __future__ import annotations

VALIDATION_SECONDS = 10.0
"""Default time limit of one validation."""
