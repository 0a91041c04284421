"""The servers that stand side by side: one module each, with one function that makes it ready to start."""
