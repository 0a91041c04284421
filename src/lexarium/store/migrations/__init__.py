"""How a database comes to the present schema, one step a version."""

SCHEMA_VERSION = "0011"
"""The newest step. Known here, so that a database which has it needs no machinery for steps to be loaded."""
