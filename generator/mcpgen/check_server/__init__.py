"""Checks of a running server against the rules of the specification that show from outside.

Messages are sent and read raw, since a correct client would hide errors of a server. A table
of checks, one for each rule, sends requests and judges the replies; nothing here calls a tool
unless the user allows it, or the tool says that it only reads.
"""
