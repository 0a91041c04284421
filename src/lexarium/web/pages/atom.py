"""Atom feeds (RFC 4287)."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from starlette.responses import Response

from lexarium.domain.text.characters import remove_xml_forbidden
from lexarium.domain.text.timestamps import format_timestamp
from lexarium.web.http.conditional import find_not_modified, hash_etag
from lexarium.web.pages.page import Page
from lexarium.web.site import get_base_url, get_path_and_query

_NAMESPACE = "http://www.w3.org/2005/Atom"
_MEDIA_TYPE = "application/atom+xml"


@dataclass(frozen=True)
class FeedEntry:
    """Entry of a feed."""

    # Unique in the feed, and the same for ever.
    id: str
    at: int
    title: str
    author: str
    # Path of the page that it is about.
    path: str
    text: str


def render_feed(page: Page, title: str, path: str, entries: Sequence[FeedEntry]) -> Response:
    """Return a feed, whose entries are those of the page at a path."""
    base, own_url = get_base_url(page.request), get_base_url(page.request) + get_path_and_query(page.request)
    root = ET.Element("feed", xmlns=_NAMESPACE)
    _add_text(root, "id", own_url)
    _add_text(root, "title", title)
    _add_text(root, "updated", _format_time(max((entry.at for entry in entries), default=0)))
    ET.SubElement(root, "link", rel="self", type=_MEDIA_TYPE, href=own_url)
    ET.SubElement(root, "link", rel="alternate", type="text/html", href=base + path)
    for entry in entries:
        element = ET.SubElement(root, "entry")
        _add_text(element, "id", f"{own_url.partition('?')[0]}#{entry.id}")
        _add_text(element, "title", entry.title)
        _add_text(element, "updated", _format_time(entry.at))
        _add_text(ET.SubElement(element, "author"), "name", entry.author)
        ET.SubElement(element, "link", rel="alternate", type="text/html", href=base + entry.path)
        _add_text(element, "summary", entry.text)
    body = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    caching = "no-cache" if page.site.get_caller(page.request) is None else "private, no-store"
    headers = {"cache-control": caching, "etag": hash_etag(body)}
    not_modified = find_not_modified(page.request.scope, headers)
    return not_modified or Response(body, headers=headers, media_type=_MEDIA_TYPE)


def _add_text(parent: ET.Element, name: str, text: str) -> None:
    ET.SubElement(parent, name).text = remove_xml_forbidden(text)


def _format_time(at: int) -> str:
    return f"{format_timestamp(at)}Z"
