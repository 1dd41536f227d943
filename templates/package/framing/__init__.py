"""Framing without I/O: messages as lines and as server-sent events, and HTTP header fields."""
