"""Transports: channels over memory, standard streams and child processes."""
