"""Driving a running server through the rules of the specification that show from outside.

Messages are sent and read raw: a client that behaves would hide what a server does wrong. A table
of checks, one for each rule, sends requests and judges the replies; nothing here calls a tool
unless the user allows it, or the tool says that it only reads.
"""
