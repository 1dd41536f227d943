"""Servers that forward requests to other servers."""
