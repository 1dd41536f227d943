"""Values of the types that users write: to and from JSON data, with their JSON Schemas."""
