"""Releases of a vocabulary, each with its differences from the one before, and their files."""

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from lexarium.domain.release import Release
from lexarium.domain.text.timestamps import format_timestamp
from lexarium.domain.vocabulary import VOCABULARIES, Vocabulary
from lexarium.formats.registry import EXPORT_FORMATS
from lexarium.services.records import releases
from lexarium.services.records.activity import get_account_names
from lexarium.services.records.release_diff import MAX_COUNTED, diff_releases
from lexarium.services.vocabularies.access import get_read_scope
from lexarium.web.pages.bibtex import format_bibtex
from lexarium.web.pages.collection_counts import summarize
from lexarium.web.pages.form_fields import get_int
from lexarium.web.pages.page import Page, PageRoute
from lexarium.web.release_files import send_release_file
from lexarium.web.site import get_base_url
from lexarium.web.template_filters import format_date, release_path


def list_releases(page: Page) -> Response:
    """Show all releases of a vocabulary."""
    slug = _choose_vocabulary(page)
    described = VOCABULARIES[slug]
    with page.read() as snapshot:
        context = {
            "described": described,
            "releases": releases.list_releases(snapshot, slug),
            "chosen_vocabulary": slug,
            "permission_slug": slug,
        }
    return page.render("releases.html", context)


def show_release(page: Page) -> Response:
    """Show a release: its differences from the one before, its files, and how to cite it."""
    slug = _choose_vocabulary(page)
    described = VOCABULARIES[slug]
    after = get_int(page.query, "after") or 0
    with page.read() as snapshot:
        release = releases.get_release(snapshot, page.request.path_params["name"], slug)
        previous = releases.find_previous(snapshot, release)
        [summary] = summarize(page.site.database.counts.count_at(snapshot, release.revision), [described])
        context = {
            "described": described,
            "release": release,
            "author": get_account_names(snapshot, [release.author])[release.author],
            "previous": previous,
            "diff": None if previous is None else diff_releases(snapshot, previous, release, after),
            "is_first_page": after == 0,
            "max_counted": MAX_COUNTED,
            "counts": summary.main_counts,
            "files": releases.list_files(snapshot, release),
            "export_formats": EXPORT_FORMATS,
            "citations": _build_citations(described, release, get_base_url(page.request) + release_path(release)),
            "chosen_vocabulary": slug,
            "permission_slug": slug,
        }
    return page.render("release.html", context)


async def send_file(page: Page) -> Response:
    """Send the file of a release in a format."""
    slug = await run_in_threadpool(_choose_vocabulary, page)
    parts = page.request.path_params
    return await send_release_file(page.site, page.request, slug, parts["name"], parts["format"])


def _choose_vocabulary(page: Page) -> str:
    """Return the vocabulary in the path, if the visitor may read it; raise NotFound."""
    with page.read() as snapshot:
        page.site.database.follow_vocabularies(snapshot)
    page.scope = get_read_scope(page.site.get_caller(page.request), [page.request.path_params["slug"]])
    [slug] = page.scope.slugs
    return slug


def _build_citations(vocabulary: Vocabulary, release: Release, url: str) -> dict[str, str]:
    name, date = release.local_name, format_date(release.created_at)
    publisher = f" {vocabulary.publisher}." if vocabulary.publisher else ""
    bibtex = format_bibtex(
        f"{vocabulary.slug}-{name}",
        vocabulary.title,
        howpublished=vocabulary.publisher or vocabulary.title,
        note=f"Release {name}",
        year=format_timestamp(release.created_at)[:4],
        url=url,
    )
    return {"Text": f"{vocabulary.title}, release {name}, {date}.{publisher} {url}", "BibTeX": bibtex}


ROUTES = (
    PageRoute("/vocabularies/{slug}/releases", list_releases),
    PageRoute("/vocabularies/{slug}/releases/{name}", show_release),
    PageRoute("/vocabularies/{slug}/releases/{name}/files/{format}", send_file),
)
