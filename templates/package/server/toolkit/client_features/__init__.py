"""Features of the client that a handler can use: elicitation, sampling, roots."""

from __future__ import annotations
