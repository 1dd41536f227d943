"""A package on disk: what it is built from, written whole, checked, updated."""
