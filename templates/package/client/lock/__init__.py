"""The lock of clients: its file, the comparison with a server, and the requests it admits."""
