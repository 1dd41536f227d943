"""What a handler may ask its client: forms, models, roots; and how it gets the answers."""

from __future__ import annotations
