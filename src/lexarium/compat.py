"""Make programs that were written for the public Cognitive Atlas read another catalogue.

redirect_cognitiveatlas("http://127.0.0.1:8000")   # from here on, or for a while: with redirect_cognitiveatlas(…):
"""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlsplit

from lexarium.domain.errors import LexariumError

_HOST = "cognitiveatlas.org"
_ASCII = "".join(map(chr, range(33, 127)))


class Redirection:
    """A redirection, undone at the end of a `with` block or by `undo()`."""

    def __init__(self, undo: Callable[[], None]) -> None:
        self.undo = undo

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        self.undo()


def redirect_cognitiveatlas(base_url: str) -> Redirection:
    """Point the installed package `cognitiveatlas`, and packages built on it such as NiMARE, at a catalogue.

    Functions that were imported before are redirected too.
    """
    base = urlsplit(base_url.rstrip("/"))
    if base.scheme not in ("http", "https") or not base.netloc:
        raise LexariumError(f"{base_url!r} is not a URL such as https://example.org.")
    try:
        import cognitiveatlas.api  # noqa: PLC0415 - optional, and takes long to load
    except ImportError:
        raise LexariumError("Package not installed; run: pip install cognitiveatlas.") from None
    api: Any = cognitiveatlas.api
    original: Any = api.DataJson

    class RedirectedDataJson(original):  # type: ignore[misc]
        # All functions of the package read through this class.
        def __init__(self, url: str, *options: Any, **keywords: Any) -> None:
            super().__init__(_rewrite_url(url, base.geturl()), *options, **keywords)

    api.DataJson = RedirectedDataJson

    def undo() -> None:
        api.DataJson = original

    return Redirection(undo)


def _rewrite_url(url: str, base: str) -> str:
    """Return the same URL below another base, with characters quoted that are not ASCII."""
    parts = urlsplit(url)
    rewritten_url = base + parts._replace(scheme="", netloc="").geturl() if parts.netloc == _HOST else url
    return quote(rewritten_url, safe=_ASCII)
