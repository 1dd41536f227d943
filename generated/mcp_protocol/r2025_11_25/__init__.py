"""The revision 2025-11-25: message models, method tables, and typed faces."""
