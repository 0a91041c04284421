"""How a database comes to the present schema, one step a version."""
