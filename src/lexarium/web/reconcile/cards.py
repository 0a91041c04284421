"""Small views of a record, for a frame in another program's page: a whole page, or a piece of one."""

import base64
import hashlib
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from lexarium.service.properties import PROPERTIES, Entity
from lexarium.service.reconciling import description
from lexarium.web.reconcile.answers import PATH

_FOLDER = Path(__file__).parents[1] / "templates"
_MOST_VALUES = 8
_LONGEST = 600
_templates = Environment(loader=FileSystemLoader(_FOLDER), autoescape=True)
_STYLE = (_FOLDER / "preview.css").read_text()
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

# Any page may show it in a frame; it loads nothing and runs nothing.
HEADERS = {
    "content-security-policy": f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors *",
    "referrer-policy": "same-origin",
}


def card(entity: Entity) -> str:
    """A record as a page."""
    lists = {each.name: each.values(entity) for each in PROPERTIES.values() if each.target}
    return _templates.get_template(
        "preview.html"
    ).render(
        style=Markup(_STYLE),  # noqa: S704 - our own file
        preview=f"{PATH}/preview",
        lists={name: (values[:_MOST_VALUES], len(values) > _MOST_VALUES) for name, values in lists.items() if values},
        **_told(entity),
    )


def flyout(name: str, identifier: str, text: str) -> str:
    """Anything that was suggested, as a piece of a page."""
    return _templates.get_template("flyout.html").render(name=name, identifier=identifier, description=text)


def _told(entity: Entity) -> dict[str, Any]:
    whole = entity.whole
    return {
        "id": whole.id,
        "name": entity.name,
        "collection": whole.collection.name.replace("_", " "),
        "state": whole.state,
        "replaced_by": whole.replaced_by,
        "aliases": [alias.text for alias in whole.alias_list],
        "description": description(entity, longest=_LONGEST),
    }
