"""Cheap password hashes for tests."""

from argon2 import PasswordHasher

from lexarium.service import passwords


def use_cheap_hashes() -> None:
    """Hash passwords in this process with the least work argon2 allows; a real one takes 0.3 s."""
    passwords._hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
