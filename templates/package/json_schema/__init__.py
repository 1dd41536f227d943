"""Validation against JSON Schemas that arrive as data: written by a user, or listed by a server."""
