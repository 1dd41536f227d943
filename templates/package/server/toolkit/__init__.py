"""The toolkit: servers written as plain functions, typed by their signatures.

`server` has the `Server` class. The other modules know no transport.
"""

from __future__ import annotations
