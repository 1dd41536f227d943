"""Recorded sessions, played again: `mcpgen replay`, `mcpgen record`.

`recording` reads a trace as sessions of messages, `matching` compares messages by value or by
shape.
"""
