"""Projects that are written once and then belong to their user: `mcpgen new`."""
