"""A peer at work: a connection and a channel joined by tasks, and its pending requests."""
