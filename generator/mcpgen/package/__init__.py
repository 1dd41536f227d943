"""Packages on disk: inputs, building, writing, checking and updating."""
