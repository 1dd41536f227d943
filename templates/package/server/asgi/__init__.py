"""Serving over HTTP: an ASGI application for every transport that the revisions know."""

from __future__ import annotations
