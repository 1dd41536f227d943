"""One revision, normalized: what its schema and its facts say, as frozen values for templates."""
