"""The MCP server library."""
