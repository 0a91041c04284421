"""Create, change, merge and review records."""
