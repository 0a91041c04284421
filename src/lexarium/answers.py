"""Public path of `lexarium.client.models`."""

from lexarium.client.models import *  # noqa: F403
