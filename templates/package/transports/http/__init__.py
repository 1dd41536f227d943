"""HTTP as a client's transport: requests by POST, responses as JSON or as event streams."""
