"""State that several processes of one server share: changes, and sessions."""
