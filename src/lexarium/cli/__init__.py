"""Commands, one module each, loaded when used."""
