"""Authorization without I/O: addresses, documents, challenges, scopes, and the flow as a generator.

Source: basic/authorization.
"""
