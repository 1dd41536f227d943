"""Tests in a browser are collected where playwright is installed: in the session `browser`."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("playwright") else ["test_*.py"]
