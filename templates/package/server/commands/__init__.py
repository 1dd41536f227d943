"""The commands of `python -m <package>` that serve."""
