"""Makes programs that were written for the public Cognitive Atlas read a catalogue elsewhere.

redirect_cognitiveatlas("http://127.0.0.1:8000")   # from here on, or for a while: with redirect_cognitiveatlas(…):
"""

from collections.abc import Callable
from importlib import import_module
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlsplit

from lexarium.domain.errors import LexariumError

_HOST = "cognitiveatlas.org"
_ASCII = "".join(map(chr, range(33, 127)))


class Redirection:
    """What undoes a redirection: at the end of a `with`, or by `undo()`."""

    def __init__(self, undo: Callable[[], None]) -> None:
        self.undo = undo

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, exception_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.undo()


def redirect_cognitiveatlas(base_url: str) -> Redirection:
    """Point the installed package `cognitiveatlas` at a catalogue, and with it what is built on it, as NiMARE is.

    Its functions, imported before or after, read there from now on.
    """
    base = urlsplit(base_url.rstrip("/"))
    if base.scheme not in ("http", "https") or not base.netloc:
        raise LexariumError(f"{base_url!r} is not an address like https://example.org.")
    try:
        # Only here: the package need not be there, and takes long to load.
        api: Any = import_module("cognitiveatlas.api")
    except ImportError:
        raise LexariumError("The package is not installed: pip install cognitiveatlas.") from None
    original: Any = api.DataJson

    class RedirectedDataJson(original):  # type: ignore[misc]
        """Its answer, from elsewhere: the one name by which all its functions read."""

        def __init__(self, url: str, *options: Any, **keywords: Any) -> None:
            super().__init__(_rewrite_url(url, base.geturl()), *options, **keywords)

    api.DataJson = RedirectedDataJson

    def undo() -> None:
        api.DataJson = original

    return Redirection(undo)


def _rewrite_url(url: str, base: str) -> str:
    """The same address below another base. What is not ASCII, as in a name, is quoted, which the package does not."""
    parts = urlsplit(url)
    rewritten_url = base + parts._replace(scheme="", netloc="").geturl() if parts.netloc == _HOST else url
    return quote(rewritten_url, safe=_ASCII)
