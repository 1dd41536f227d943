"""Hand edits of generated modules as named rules, which are replayed on every later generation."""
