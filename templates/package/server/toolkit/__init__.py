"""What most servers are written with: plain functions, typed by their signatures.

`Server` (in `toolkit.server`) puts the parts together; each part is a module of its own and knows
nothing of transports.
"""

from __future__ import annotations
