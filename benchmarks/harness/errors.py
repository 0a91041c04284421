"""Benchmark errors.

BenchmarkError
├── MissingTool          a required program is neither present nor installable
├── SetupError           a server did not start, or its catalogue could not be loaded
└── UnexpectedResponse   a response is not the one to be measured
"""


class BenchmarkError(Exception):
    """Base class; the message is one sentence for the user."""


class MissingTool(BenchmarkError):
    """A required program is neither present nor installable."""


class SetupError(BenchmarkError):
    """A server did not start, or its catalogue could not be loaded."""


class UnexpectedResponse(BenchmarkError):
    """A response is not the one to be measured."""
