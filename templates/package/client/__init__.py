"""The client: opening sessions, requests, subscriptions, handlers, and the response cache."""

from __future__ import annotations
