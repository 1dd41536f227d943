"""Transports: channels over memory, standard streams and child processes.

A transport waits, frames messages and passes them on; it does not interpret them.
"""

from __future__ import annotations
