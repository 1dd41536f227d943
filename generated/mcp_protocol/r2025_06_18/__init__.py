"""The revision 2025-06-18: message models, method tables, and typed faces."""
