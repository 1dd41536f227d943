"""How messages are cut from bytes and headers: lines, server-sent events, HTTP. No I/O."""

from __future__ import annotations
