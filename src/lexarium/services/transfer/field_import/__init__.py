"""Import of JSON, and of tables of the main vocabulary, by field."""
