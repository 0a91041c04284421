"""Forms with files: read as they come, past a size onto the disk, and never past the limit."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import BinaryIO

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from lexarium.web.http.limits import Limits
from lexarium.web.http.problems import HTTPProblem

_MAX_FILES = 50
_MAX_FIELDS = 50
_MULTIPART = "multipart/form-data"


@dataclass(frozen=True)
class UploadedForm:
    """A form that came with files."""

    fields: Mapping[str, str]
    files: list[tuple[str, BinaryIO]]
    """Each under the name that it has where it comes from."""


@asynccontextmanager
async def read_upload(request: Request, limits: Limits) -> AsyncIterator[UploadedForm]:
    """The fields and files of a form, for as long as the block takes."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _MULTIPART:
        raise HTTPProblem(415, f"Files are sent as a form of the kind {_MULTIPART}.")
    chunks = limits.iter_body(request, limits.upload_bytes, max_in_memory=_MAX_FILES * MultiPartParser.spool_max_size)
    parser = MultiPartParser(request.headers, chunks, max_files=_MAX_FILES, max_fields=_MAX_FIELDS)
    try:
        form = await parser.parse()
    except MultiPartException:
        raise HTTPProblem(400, f"The form cannot be read: it is malformed, or has over {_MAX_FILES} files.") from None
    try:
        values = list(form.multi_items())
        # A browser sends a file without a name where none was chosen.
        files = [
            (upload.filename, upload.file) for _, upload in values if isinstance(upload, UploadFile) and upload.filename
        ]
        yield UploadedForm({name: value for name, value in values if isinstance(value, str)}, files)
    finally:
        await form.close()
