"""Vocabularies: their metadata, schemas and permissions."""
