"""Migrations of the schema."""

# Newest version, kept here so that an up-to-date database needs no Alembic.
SCHEMA_VERSION = "0016"
