"""The revision 2026-07-28: message models, method tables, and typed faces."""
