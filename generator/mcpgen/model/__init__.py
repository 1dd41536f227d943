"""One normalized revision: the content of its schema and facts, as frozen values for templates."""
