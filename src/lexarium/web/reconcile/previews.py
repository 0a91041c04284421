"""Previews and flyouts: small views of records for other programs' pages."""

import base64
import hashlib
from pathlib import Path

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from lexarium.services.search.properties import Entity
from lexarium.services.search.reconciliation import format_description
from lexarium.web.reconcile.responses import ReconcileService

_TEMPLATES_DIR = Path(__file__).parents[1] / "templates"
_MAX_VALUES = 8
_MAX_DESCRIPTION_CHARS = 600
_templates = Environment(loader=FileSystemLoader(_TEMPLATES_DIR), autoescape=True)
_STYLE = (_TEMPLATES_DIR / "preview.css").read_text()
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

# Any page may embed it; it loads nothing and runs nothing.
HEADERS = {
    "content-security-policy": f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors *",
    "referrer-policy": "same-origin",
}


def render_preview(service: ReconcileService, entity: Entity) -> str:
    """Render a record as a page."""
    record, entity_ids = entity.record, service.entity_ids
    related = {prop.name: prop.values(entity) for prop in service.properties.values() if prop.targets}
    return _templates.get_template(
        "preview.html"
    ).render(
        style=Markup(_STYLE),  # noqa: S704 - our own file
        preview=f"{service.path}/preview",
        lists={name: (values[:_MAX_VALUES], len(values) > _MAX_VALUES) for name, values in related.items() if values},
        id=entity_ids.format(record.id, record.iri),
        name=entity.name,
        collection=service.serialize_type(record.collection)["name"],
        state=record.state,
        replaced_by=None if record.replaced_by is None else entity_ids.format(record.replaced_by),
        aliases=[alias.text for alias in record.aliases],
        description=format_description(entity, max_chars=_MAX_DESCRIPTION_CHARS),
    )


def render_flyout(name: str, identifier: str, text: str) -> str:
    """Render a suggestion as a fragment of HTML."""
    return _templates.get_template("flyout.html").render(name=name, identifier=identifier, description=text)
