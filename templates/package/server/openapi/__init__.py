"""Servers made from OpenAPI documents: `Server.from_openapi`.

`document` reads the document, `operations` its operations, `schema_conversion` their schemas,
`route_maps` chooses the kind of item for each, `http_operation` makes the HTTP requests, with
parameters written by `parameter_styles`, and `openapi_server` joins these into a server.

No OpenAPI library is used. Those for servers deserialize parameters, and those for documents are
models that refuse a whole document for one defect, or fetch references from the network.
"""
