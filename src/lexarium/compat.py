"""Public path of `lexarium.client.cognitiveatlas`."""

from lexarium.client.cognitiveatlas import Redirection, redirect_cognitiveatlas

__all__ = ["Redirection", "redirect_cognitiveatlas"]
