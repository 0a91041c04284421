"""CURIEs and IRIs with their prefixes, and rules by which ids are minted."""
