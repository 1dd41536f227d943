"""`mcpgen schema add`: a schema file becomes a revision, with facts that a person then checks."""
