"""The resource server: token verification, scope checks, DPoP, and protected resource metadata.

Source: basic/authorization; RFC 6750, RFC 7662, RFC 9068, RFC 9449, RFC 9728.
"""
