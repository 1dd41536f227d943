"""The server: what users write, and how it is served over streams and over HTTP."""
