"""Shared by tests of the package: both ends of a connection, scripted peers, clocks, engines."""
