"""Forms with files: read as they come, past a size onto the disk, and never past the limit."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import BinaryIO

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from lexarium.web.limits import Limits
from lexarium.web.problems import HttpProblem

_MOST_FILES = 50
_MOST_FIELDS = 50
_KIND = "multipart/form-data"


@dataclass(frozen=True)
class Sent:
    """A form that came with files."""

    fields: Mapping[str, str]
    files: list[tuple[str, BinaryIO]]
    """Each under the name that it has where it comes from."""


@asynccontextmanager
async def read_upload(request: Request, limits: Limits) -> AsyncIterator[Sent]:
    """The fields and files of a form, for as long as the block takes."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _KIND:
        raise HttpProblem(415, f"Files are sent as a form of the kind {_KIND}.")
    pieces = limits.pieces(request, limits.upload_bytes, kept=_MOST_FILES * MultiPartParser.spool_max_size)
    parser = MultiPartParser(request.headers, pieces, max_files=_MOST_FILES, max_fields=_MOST_FIELDS)
    try:
        form = await parser.parse()
    except MultiPartException:
        raise HttpProblem(400, f"The form cannot be read: it is malformed, or has over {_MOST_FILES} files.") from None
    try:
        values = list(form.multi_items())
        # A browser sends a file without a name where none was chosen.
        files = [(each.filename, each.file) for _, each in values if isinstance(each, UploadFile) and each.filename]
        yield Sent({name: value for name, value in values if isinstance(value, str)}, files)
    finally:
        await form.close()
