"""Transports: channels over memory, standard streams and child processes.

Each is thin: wait, frame, pass on. What a message means is decided elsewhere.
"""

from __future__ import annotations
