"""HTTP as a client's transport: one address to post to, answers as JSON or as streams of events."""

from __future__ import annotations
