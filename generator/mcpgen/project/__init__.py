"""New projects, whose files then belong to the user, and commands on whole projects."""
