"""Send the files of releases."""

import re

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from lexarium.domain.errors import NotFound
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.formats.registry import EXPORT_FORMATS, Format
from lexarium.services.records.releases import get_release
from lexarium.services.transfer import release_files
from lexarium.web.http.conditional import find_not_modified, read_conditional_headers
from lexarium.web.http.encodings import IDENTITY, choose_encoding, encode_chunks, encoding_headers
from lexarium.web.http.streaming import run_steps, stream_chunks
from lexarium.web.site import Site

VARY = {"vary": "Accept, Accept-Encoding"}


async def send_release_file(site: Site, request: Request, vocabulary: str, name: str, format_name: str) -> Response:
    """Send the file of a release; raise NotFound. The first request for it has it rendered and stored."""
    database, limits = site.database, site.limits
    release = await run_in_threadpool(database.run_read, get_release, name, vocabulary)
    chosen_format = EXPORT_FORMATS.get(format_name)
    if chosen_format is None:
        raise NotFound(f"File not found; available formats: {', '.join(EXPORT_FORMATS)}.")
    file = await run_in_threadpool(database.run_read, release_files.find_file, release.name, chosen_format.name)
    if file is None:
        file = await run_steps(release_files.iter_rendering(database, release, chosen_format), limits)
    encoding = choose_encoding(read_conditional_headers(request.scope)[0])
    headers = {"etag": f'"{file.sha256}-{encoding}"', "cache-control": "no-cache", **VARY}
    if not_modified := find_not_modified(request.scope, headers):
        return not_modified
    file_name = build_file_name(VOCABULARIES[release.vocabulary].title, None, release.local_name, chosen_format)
    headers["content-disposition"] = f'attachment; filename="{file_name}"'
    headers |= {key.decode(): value.decode() for key, value in encoding_headers(encoding)}
    if encoding == IDENTITY:
        headers["content-length"] = str(file.size)
    if request.method == "HEAD":
        return StreamingResponse(iter(()), headers=headers, media_type=file.media_type)
    content = release_files.iter_content(database, file)
    return await stream_chunks(encode_chunks(encoding, content), limits, file.media_type, headers)


def build_file_name(title: str, collection: str | None, state: str, format: Format) -> str:
    """Return the name that a browser saves an export under."""
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "catalogue"
    return "-".join([words, *([collection] if collection else []), state]) + format.extensions[0]
