"""Authorization without I/O: URLs, metadata documents, challenges, scopes, flows as generators.

Source: basic/authorization.
"""
