"""The revision 2024-11-05: message models, method tables, and typed faces."""
