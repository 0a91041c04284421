"""Create, upgrade, check, copy and clean databases."""
