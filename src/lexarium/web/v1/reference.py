"""The reference of v1 as a page, made from its OpenAPI document; nothing is loaded from elsewhere."""

from collections import defaultdict
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response
from starlette.templating import Jinja2Templates

from lexarium.web.pages import SECURITY_HEADERS

router = APIRouter(include_in_schema=False)
_templates = Jinja2Templates(Path(__file__).parents[1] / "templates")


@router.get("/docs")
def reference(request: Request) -> Response:
    document = request.app.openapi()
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            tag = operation.get("tags", ["service"])[0]
            groups[tag].append({"method": method.upper(), "path": path, **operation})
    context = {"title": document["info"]["title"], "groups": groups}
    return _templates.TemplateResponse(request, "reference.html", context, headers=SECURITY_HEADERS)
