"""The web page of `python -m <package> inspect TARGET --web`, and its server."""
