"""RDF formats: SKOS and OWL."""
