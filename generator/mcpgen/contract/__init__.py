"""Contracts: what a server shows to its clients, in a file, and whom a change of it breaks."""
