"""The commands. Each stands in a module that is loaded when it is first used."""
