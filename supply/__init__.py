"""Tools for the locked dependencies: bill of materials and audit."""
