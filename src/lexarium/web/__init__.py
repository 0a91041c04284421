"""HTTP. The web framework is used here and nowhere else."""
