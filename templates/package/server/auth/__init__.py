"""The resource server: tokens are verified, scopes are checked, and metadata is served.

Source: basic/authorization; RFC 6750, RFC 7662, RFC 9068, RFC 9449, RFC 9728.
"""
