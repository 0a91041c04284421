"""What stops a benchmark.

BenchmarkError
├── MissingTool     a program the benchmark needs is neither there nor installable
├── SetupError    a server did not start, or its catalogue could not be loaded
└── UnexpectedResponse     a server answered something else than what is being measured
"""


class BenchmarkError(Exception):
    """Its text is one sentence for the person who ran the benchmark."""


class MissingTool(BenchmarkError):
    """A program the benchmark needs is neither there nor installable."""


class SetupError(BenchmarkError):
    """A server did not start, or its catalogue could not be loaded."""


class UnexpectedResponse(BenchmarkError):
    """A server answered something else than what is being measured."""
