"""Import of ontologies and other documents as resources, statement by statement."""
