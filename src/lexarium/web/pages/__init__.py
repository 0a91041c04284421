"""The pages that people see, rendered here, whole without a script."""
