"""The protocol without I/O: messages in, events out; calls in, messages out."""

from __future__ import annotations
