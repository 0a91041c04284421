"""The Jinja environment of all templates."""

import sys
from contextlib import suppress
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from pickle import UnpicklingError

import jinja2
from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket

from lexarium import __version__
from lexarium.domain.change import Action
from lexarium.domain.identifiers import get_local_id
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.text.markup import decode_entities
from lexarium.domain.text.nouns import add_article
from lexarium.domain.text.numbers import format_count
from lexarium.domain.text.placeholders import is_placeholder
from lexarium.services.access.passwords import MIN_LENGTH
from lexarium.services.records.statement_view import find_link
from lexarium.services.records.statistics import QUALITY_ISSUES
from lexarium.web import template_filters as filters
from lexarium.web.http.static_files import PRELOADED_FONTS, WEB_FOLDER, static_url
from lexarium.web.statement_html import format_statements, format_value


class _CompiledTemplates(FileSystemBytecodeCache):
    """Compiled templates, kept beside compiled modules where that folder is writable: compiling is slow."""

    def __init__(self) -> None:
        folder = Path(cache_from_source(__file__)).parent
        super().__init__(str(folder), f"template-{__version__}-{jinja2.__version__}-%s.cache")

    def load_bytecode(self, bucket: Bucket) -> None:
        try:
            super().load_bytecode(bucket)
        except (OSError, EOFError, UnpicklingError):  # damaged: the template is compiled again
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            super().dump_bytecode(bucket)


@cache
def get_templates() -> Environment:
    """Return the template environment."""
    environment = Environment(
        loader=FileSystemLoader(WEB_FOLDER / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        auto_reload=False,  # looks at the files of all templates of a page for each request
        bytecode_cache=None if sys.dont_write_bytecode else _CompiledTemplates(),
    )
    dates = (filters.format_date, filters.format_datetime, filters.format_iso, filters.format_month)
    labels = (
        filters.action_label,
        filters.field_label,
        filters.to_plural,
        filters.to_singular,
        filters.capitalize_first,
        filters.vocabulary_title,
    )
    paths = (
        filters.api_path,
        filters.browse_path,
        filters.list_query,
        filters.propose_path,
        filters.quote_path,
        filters.record_page,
        filters.record_path,
        filters.release_path,
    )
    names = (filters.get_record_slug, filters.get_slug, filters.local_name, get_local_id)
    others = (
        filters.format_number,
        filters.format_prose,
        filters.link_outside,
        filters.link_record,
        filters.split_paragraphs,
        add_article,
        find_link,
        format_statements,
        format_value,
        decode_entities,
        is_placeholder,
    )
    environment.filters |= {function.__name__: function for function in (*dates, *labels, *paths, *names, *others)}
    environment.globals |= {
        "action_choices": [(action.value, filters.action_label(action)) for action in Action],
        "add_query": filters.add_query,
        "collections": COLLECTIONS,
        "fonts": PRELOADED_FONTS,
        "format_count": format_count,
        "min_password_length": MIN_LENGTH,
        "quality_issues": QUALITY_ISSUES,
        "software": f"Lexarium {__version__}",
        "static_url": static_url,
    }
    return environment
