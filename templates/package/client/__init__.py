"""What every client stands on: the way to a session, calls, changes, answers; and what it keeps."""

from __future__ import annotations
