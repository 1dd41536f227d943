"""The web page of `python -m <package> inspect TARGET --web`, and what it is served by."""
