"""Servers that pass requests on to other servers."""
