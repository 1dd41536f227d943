"""Features of servers that load more only when they are used: one module for each."""
