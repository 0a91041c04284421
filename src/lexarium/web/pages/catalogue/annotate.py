"""Annotate a text with the terms it mentions."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.formats.tables.cells import format_csv
from lexarium.search.annotator import Annotator, Mention
from lexarium.services.search.properties import load_entities
from lexarium.services.serializers import iter_annotations
from lexarium.web.annotator import get_annotator
from lexarium.web.pages.page import FormRoute, Page, PageRoute

_MAX_MENTIONS = 20_000
_CSV_COLUMNS = ("start", "end", "text", "id", "name", "collection")


def show_form(page: Page) -> Response:
    """Show an empty form."""
    context = {"text": "", "segments": None, "labels_searched": _list_labels(page)}
    return page.render("annotate.html", context)


async def annotate(page: Page) -> Response:
    """Return the annotated text as a page, or its mentions as a CSV or JSON file."""
    page.site.limits.texts.reserve(page.request, len(str(page.fields.get("text", ""))))
    annotator = await get_annotator(page.site.annotator_cache)
    async with page.site.limits.heavy_work.acquire_slot():
        return await run_in_threadpool(_render_result, page, annotator)


def _render_result(page: Page, annotator: Annotator) -> Response:
    text = str(page.fields.get("text", "")).replace("\r\n", "\n")
    batches = annotator.find_mentions([text], page.scope.searched_collections)
    mentions = list(islice(chain.from_iterable(batches), _MAX_MENTIONS))
    output_format = page.fields.get("format")
    if output_format == "csv":
        rows = ([annotation[name] for name in _CSV_COLUMNS] for annotation in iter_annotations(mentions))
        csv_body = format_csv(chain([_CSV_COLUMNS], rows)).encode(errors="replace")
        return _build_download(csv_body, "text/csv", "terms.csv")
    if output_format == "json":
        body = orjson.dumps({"annotations": list(iter_annotations(mentions))})
        return _build_download(body, "application/json", "terms.json")
    terms = {term.id: term for mention in mentions for term in mention.terms}
    with page.read() as snapshot:
        entities = load_entities(snapshot, list(terms), with_related=False)
        classes = page.site.class_cache.get(snapshot)
    class_by_term = {term_id: classes.get(entity.record.class_id) for term_id, entity in entities.items()}
    counts = Counter(term.id for mention in mentions for term in mention.terms)
    context = {
        "text": text,
        "segments": list(_split_text(text, mentions)),
        "term_counts": [(terms[term_id], count) for term_id, count in counts.most_common()],
        "mentions": len(mentions),
        "classes": class_by_term,
        "truncated": len(mentions) == _MAX_MENTIONS,
        "labels_searched": _list_labels(page),
    }
    return page.render("annotate.html", context)


def _list_labels(page: Page) -> list[str]:
    """Return the nouns for the records that are looked for."""
    return list(dict.fromkeys(COLLECTIONS[name].plural for name in page.scope.searched_collections))


def _split_text(text: str, mentions: Sequence[Mention]) -> Iterator[tuple[str, Mention | None]]:
    """Split a text into segments, each with the mention that it is, if any."""
    position = 0
    for mention in mentions:
        if mention.start > position:
            yield text[position : mention.start], None
        yield text[mention.start : mention.end], mention
        position = mention.end
    if position < len(text):
        yield text[position:], None


def _build_download(body: bytes, media_type: str, filename: str) -> Response:
    return Response(body, 200, {"content-disposition": f'attachment; filename="{filename}"'}, media_type=media_type)


ROUTES = (PageRoute("/annotate", show_form), FormRoute("/annotate", annotate))
