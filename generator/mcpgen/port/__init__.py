"""Moves programs of FastMCP and of the official SDK to a generated package, by libcst.

`alternatives` has the names of the other SDKs with what takes their place, from the table that
packages with the feature `migration` carry. `servers` finds the servers of a program, `rewriting`
changes one module, `imports` its imports, and `command` reads, shows and writes the files.
"""
