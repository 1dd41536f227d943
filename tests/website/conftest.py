"""Tests of the site are collected where its generator is installed: in the session `docs`."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("griffe") else ["test_*.py"]
