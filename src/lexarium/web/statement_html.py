"""HTML of statements, which a page may show by the thousand: macros of templates take several times as long."""

from collections.abc import Iterable

from markupsafe import Markup, escape

from lexarium.domain.identifiers import get_local_id
from lexarium.services.records.statement_view import ShownStatements, ShownValue
from lexarium.web.template_filters import format_prose, link_outside, link_record


def format_statements(group: ShownStatements) -> Markup:
    """Return the label and the values of statements with one predicate, as items of a definition list."""
    title = f' title="{escape(group.description.replace("`", ""))}"' if group.description else ""
    values = [_build_value(item) for item in group.values]
    items = "".join([f"<li>{item}</li>" for item in values])
    shown = values[0] if len(values) == 1 else f'<ul class="bare">{items}</ul>'
    html = f"<dt{title}>{link_outside(group.label, group.link)}</dt>\n<dd>{shown}</dd>\n"
    return Markup(html)  # noqa: S704 (escaped)


def format_value(item: ShownValue) -> Markup:
    """Return the value of a statement, with its nested statements and qualifiers."""
    return Markup(_build_value(item))  # noqa: S704 (escaped)


def _build_value(item: ShownValue) -> str:
    language = escape(item.lang) if item.lang else ""
    place = item.vocabulary
    if item.record_id:
        shown: str = link_record(item.record_id, item.text)
        place = place and f"{place}, {get_local_id(item.record_id)}"
    elif item.link:
        shown = link_outside(item.text, item.link)
    else:
        lang = f' lang="{language}"' if language else ""
        shown = f'<span class="lines"{lang}>{format_prose(item.text)}</span>'
    parts = [
        shown,
        f' <span class="faint small">{escape(place)}</span>' if place else "",
        f' <span class="faint small">{language}</span>' if language else "",
        _build_list("nested", item.parts),
        _build_list("nested small faint", item.qualifiers),
    ]
    return "".join(parts)


def _build_list(css_class: str, groups: Iterable[ShownStatements]) -> str:
    items = "".join([format_statements(group) for group in groups]) if groups else ""
    return f'<dl class="{css_class}">{items}</dl>' if items else ""
