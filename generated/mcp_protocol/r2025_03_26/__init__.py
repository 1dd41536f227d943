"""The revision 2025-03-26: message models, method tables, and typed faces."""
