"""The reference as a page, made from the OpenAPI document; nothing is loaded from elsewhere."""

import json
import re
import shlex
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, FastAPI, Request
from markupsafe import Markup, escape
from starlette.responses import Response

from lexarium.web.pages.site import Site, get_base_url

router = APIRouter(include_in_schema=False)
PATH = "/docs"
_KEPT = 4
"""For how many names of the site the page is kept."""
_CODE = re.compile(r"`([^`]+)`")

Told = Mapping[str, Any]
"""A part of the OpenAPI document."""


@router.get(PATH)
def reference(request: Request) -> Response:
    site: Site = request.app.state.site
    title, content = request.app.openapi()["info"]["title"], _content(site, request.app, get_base_url(request))
    return site.render(request, "reference.html", {"title": title, "content": content})


@lru_cache(maxsize=_KEPT)
def _content(site: Site, app: FastAPI, base: str) -> Markup:
    """What the page tells, kept: it is large, and differs only by where the site is."""
    document: Told = app.openapi()
    groups = {tag["name"]: {"description": tag["description"], "operations": []} for tag in document["tags"]}
    for path, operations in sorted(document["paths"].items()):
        for method, operation in operations.items():
            groups[operation["tags"][0]]["operations"].append(
                _operation(document, base, method.upper(), path, operation)
            )
    context = {
        "title": document["info"]["title"],
        "description": document["info"]["description"],
        "groups": groups,
        "shapes": {name: _shape(schema) for name, schema in sorted(document["components"]["schemas"].items())},
        "prose": _prose,
    }
    return Markup(site.render_body("_reference.html", context, PATH, base).decode())  # noqa: S704 (made by a template)


def _operation(document: Told, base: str, method: str, path: str, operation: Told) -> dict[str, Any]:
    answers = {status: _resolved(document, told) for status, told in operation["responses"].items()}
    return {
        "id": operation["operationId"],
        "method": method,
        "path": path,
        "summary": operation["summary"],
        "description": operation.get("description", ""),
        "guarded": bool(operation["security"]),
        "parameters": [_parameter(each) for each in operation.get("parameters", [])],
        "bodies": _contents(operation.get("requestBody", {})),
        "fields": _body_fields(document, operation),
        "answers": {status: _answer(told) for status, told in answers.items() if status < "300"},
        "errors": {status: told["description"] for status, told in answers.items() if "300" <= status < "default"},
        "curl": _curl(base, method, path, operation),
    }


def _parameter(parameter: Told) -> dict[str, Any]:
    return {**_field(parameter["name"], parameter["schema"]), **parameter, "required": parameter.get("required", False)}


def _body_fields(document: Told, operation: Told) -> list[dict[str, Any]]:
    for media in operation.get("requestBody", {}).get("content", {}).values():
        return _fields(_resolved(document, media["schema"]))
    return []


def _answer(told: Told) -> dict[str, Any]:
    return {"description": told["description"], "headers": list(told.get("headers", {})), "contents": _contents(told)}


def _contents(told: Told) -> list[dict[str, Any]]:
    """What a body or an answer holds: of which content type and shape, and an example. The same twice is told once."""
    found: dict[str, dict[str, Any]] = {}
    for kind, media in told.get("content", {}).items():
        shape = media["schema"]["$ref"].rpartition("/")[2]
        content = found.setdefault(shape, {"kinds": [], "shape": shape, "example": _text(media.get("example"))})
        content["kinds"].append(kind)
    return list(found.values())


def _text(example: Any) -> str:
    return example if isinstance(example, str) else json.dumps(example, ensure_ascii=False, indent=2)


def _shape(schema: Told) -> dict[str, Any]:
    return {"description": schema.get("description", ""), "fields": _fields(schema), **_kind(schema)}


def _fields(schema: Told) -> list[dict[str, Any]]:
    required = schema.get("required", [])
    return [{**_field(name, each), "required": name in required} for name, each in schema.get("properties", {}).items()]


def _field(name: str, schema: Told) -> dict[str, Any]:
    inner = [_field(each, told) for each, told in schema.get("properties", {}).items()]
    return {"name": name, "description": schema.get("description", ""), "inner": inner, **_kind(schema)}


def _kind(schema: Told) -> dict[str, Any]:
    """What a value is, in words, and the shape that the words name, if any."""
    shapes = re.findall(r'"#/components/schemas/(\w+)"', json.dumps(schema))
    return {"kind": _words(schema), "shape": shapes[0] if shapes else None}


def _words(schema: Told) -> str:
    several = schema.get("anyOf") or schema.get("oneOf")
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if several:
        return " or ".join(dict.fromkeys(_words(each) for each in several))
    if "enum" in schema or "const" in schema:
        return ", ".join(map(str, schema.get("enum", [schema.get("const")])))
    if schema.get("type") == "array":
        return f"list of {_words(schema.get('items', {}))}"
    words = {"string": "text", "integer": "whole number", "boolean": "true or false"}
    kind = str(schema.get("type", "anything"))
    limit = f", at most {schema['maxLength']:,} characters" if "maxLength" in schema else ""
    default = f", else {schema['default']}" if schema.get("default") else ""
    return words.get(kind, kind) + limit + default


def _resolved(document: Told, told: Told) -> Any:
    """What a reference refers to; anything else as it is."""
    while "$ref" in told:
        _, _, kind, name = told["$ref"].split("/")
        told = document["components"][kind][name]
    return told


def _curl(base: str, method: str, path: str, operation: Told) -> str:
    """A command that sends the example."""
    given = {each["name"]: each for each in operation.get("parameters", []) if "example" in each}
    for name, parameter in given.items():
        path = path.replace(f"{{{name}}}", quote(str(parameter["example"]), safe=""))
    query = urlencode({name: each["example"] for name, each in given.items() if each["in"] == "query"})
    parts = [shlex.quote(f"{base}{path}?{query}" if query else f"{base}{path}")]
    if operation["security"]:
        parts.append('-H "Authorization: Bearer $TOKEN"')
    parts += [_header(name, each["example"]) for name, each in given.items() if each["in"] == "header"]
    for kind, media in operation.get("requestBody", {}).get("content", {}).items():
        example = media["example"]
        body = example if isinstance(example, str) else json.dumps(example, ensure_ascii=False)
        parts += [_header("Content-Type", kind), f"--data-binary {shlex.quote(body)}"]
        break
    how = "" if method == "GET" or (method == "POST" and "requestBody" in operation) else f"-X {method} "
    return f"curl {how}" + " \\\n  ".join(parts)


def _header(name: str, value: str) -> str:
    return "-H " + shlex.quote(f"{name}: {value}")


def _prose(text: str) -> Markup:
    """Text with what stands between backticks set as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704
