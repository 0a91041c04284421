"""Read forms with files: spooled to disk past a size, and limited in size and number."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import BinaryIO

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from lexarium.web.http.limits import Limits
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.http.request_body import get_media_type

_MAX_FILES = 50
_MAX_FIELDS = 50
_MULTIPART = "multipart/form-data"


@dataclass(frozen=True)
class UploadedForm:
    """Fields and files of a multipart form; each file with the name it has at the client."""

    fields: Mapping[str, str]
    files: list[tuple[str, BinaryIO]]


@asynccontextmanager
async def read_upload(request: Request, limits: Limits) -> AsyncIterator[UploadedForm]:
    """Read a form, whose files are open until the block ends."""
    if get_media_type(request) != _MULTIPART:
        raise HTTPProblem(415, f"Send files as a form of type {_MULTIPART}.")
    chunks = limits.iter_body(request, limits.upload_bytes, max_in_memory=_MAX_FILES * MultiPartParser.spool_max_size)
    parser = MultiPartParser(request.headers, chunks, max_files=_MAX_FILES, max_fields=_MAX_FIELDS)
    try:
        form = await parser.parse()
    except MultiPartException:
        raise HTTPProblem(400, f"Form is malformed or has more than {_MAX_FILES} files.") from None
    try:
        values = list(form.multi_items())
        # A browser sends a file without a name where the user chose none.
        files = [
            (upload.filename, upload.file) for _, upload in values if isinstance(upload, UploadFile) and upload.filename
        ]
        yield UploadedForm({name: value for name, value in values if isinstance(value, str)}, files)
    finally:
        await form.close()
