"""The /docs page, rendered from the OpenAPI document. It loads nothing from other sites."""

import json
import re
import shlex
from collections.abc import Mapping
from functools import lru_cache
from threading import Lock
from typing import Any
from urllib.parse import quote, urlencode

from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response

from lexarium.web.site import Site, get_base_url
from lexarium.web.v1.openapi.document import DOCUMENT_LOCK, build_document

# Rendering takes a lot of memory, like building the document: not twice at the same time.
_PAGE_LOCK = Lock()
_CODE = re.compile(r"`([^`]+)`")
_SCHEMA_REF = re.compile(r'"#/components/schemas/(\w+)"')
_TYPE_WORDS = {"string": "text", "integer": "whole number", "boolean": "true or false"}

JsonObject = Mapping[str, Any]


def respond(site: Site, request: Request) -> Response:
    """Return the page."""
    with _PAGE_LOCK:
        content = _render(site, get_base_url(request))
    return site.render(request, "reference.html", {"title": site.settings.title, "content": content})


@lru_cache(maxsize=4)
def _render(site: Site, base: str) -> Markup:
    """Return the content, cached: it is large, and differs only by the base URL."""
    with DOCUMENT_LOCK:
        document = build_document(site.settings.title)

    def resolve(value: JsonObject) -> JsonObject:
        while "$ref" in value:
            _, _, kind, name = value["$ref"].split("/")
            value = document["components"][kind][name]
        return value

    functions = (_build_curl, _find_schema, _format_example, _format_type, _render_inline_code, resolve)
    context = {"document": document, **{function.__name__.removeprefix("_"): function for function in functions}}
    return Markup(site.render_body("_reference.html", context, "/docs", base).decode())  # noqa: S704 (made by a template)


def _format_example(example: Any, indent: int | None = 2) -> str:
    return example if isinstance(example, str) else json.dumps(example, ensure_ascii=False, indent=indent)


def _find_schema(schema: JsonObject) -> str | None:
    """Return the name of the first schema that this one refers to."""
    match = _SCHEMA_REF.search(json.dumps(schema))
    return match and match.group(1)


def _format_type(schema: JsonObject) -> str:
    alternatives = schema.get("anyOf") or schema.get("oneOf")
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if alternatives:
        return " or ".join(dict.fromkeys(map(_format_type, alternatives)))
    if "enum" in schema or "const" in schema:
        return ", ".join(map(str, schema.get("enum", [schema.get("const")])))
    if schema.get("type") == "array":
        return f"list of {_format_type(schema.get('items', {}))}"
    name = str(schema.get("type", "anything"))
    limit = f", at most {schema['maxLength']:,} characters" if "maxLength" in schema else ""
    default = f", else {schema['default']}" if schema.get("default") else ""
    return _TYPE_WORDS.get(name, name) + limit + default


def _build_curl(base: str, method: str, path: str, operation: JsonObject) -> str:
    """Return a command that sends the example."""
    examples: dict[str, dict[str, Any]] = {"path": {}, "query": {}, "header": {}}
    for parameter in operation.get("parameters", ()):
        if "example" in parameter:
            examples[parameter["in"]][parameter["name"]] = parameter["example"]
    for name, value in examples["path"].items():
        path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
    query = f"?{urlencode(examples['query'])}" if examples["query"] else ""
    parts = [shlex.quote(f"{base}{path}{query}")]
    if operation["security"]:
        parts.append('-H "Authorization: Bearer $TOKEN"')
    headers, content = examples["header"], operation.get("requestBody", {}).get("content", {})
    media_type = next(iter(content), None)
    if media_type:
        headers["Content-Type"] = media_type
    parts += [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in headers.items()]
    if media_type:
        example = content[media_type].get("example", "@body.json")
        parts.append(f"--data-binary {shlex.quote(_format_example(example, indent=None))}")
    is_default = method == "get" or (method == "post" and content)
    return f"curl {'' if is_default else f'-X {method.upper()} '}" + " \\\n  ".join(parts)


def _render_inline_code(text: str) -> Markup:
    """Escape a text, and render what is between backticks as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704
