"""The /docs page, rendered from the OpenAPI document; it loads nothing from elsewhere."""

import json
import re
import shlex
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlencode

from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response

from lexarium.web.pages.site import Site, get_base_url

_PATH = "/docs"
_CODE = re.compile(r"`([^`]+)`")

JsonObject = Mapping[str, Any]


def respond(site: Site, request: Request, load_document: Callable[[], dict[str, Any]]) -> Response:
    """Return the page."""
    content = _render(site, load_document, get_base_url(request))
    return site.render(request, "reference.html", {"title": load_document()["info"]["title"], "content": content})


@lru_cache(maxsize=4)
def _render(site: Site, load_document: Callable[[], dict[str, Any]], base: str) -> Markup:
    """Return the content, cached: it is large, and differs only by the base URL."""
    document = load_document()
    groups = {tag["name"]: {"description": tag["description"], "operations": []} for tag in document["tags"]}
    for path, operations in sorted(document["paths"].items()):
        for method, operation in operations.items():
            description = _describe_operation(document, operation)
            description |= {"method": method.upper(), "path": path, "curl": _build_curl(base, method, path, operation)}
            groups[operation["tags"][0]]["operations"].append(description)
    schemas = sorted(document["components"]["schemas"].items())
    context = {
        "title": document["info"]["title"],
        "description": document["info"]["description"],
        "groups": groups,
        "shapes": {name: {**_describe_field(name, value), "fields": _list_fields(value)} for name, value in schemas},
        "prose": _render_inline_code,
    }
    return Markup(site.render_body("_reference.html", context, _PATH, base).decode())  # noqa: S704 (made by a template)


def _describe_operation(document: JsonObject, operation: JsonObject) -> dict[str, Any]:
    responses = {status: _resolve_ref(document, value) for status, value in operation["responses"].items()}
    body = operation.get("requestBody", {})
    schemas = [_resolve_ref(document, media["schema"]) for media in body.get("content", {}).values()]
    return {
        "id": operation["operationId"],
        "summary": operation["summary"],
        "description": operation.get("description", ""),
        "guarded": bool(operation["security"]),
        "parameters": [
            {"required": False, **_describe_field(parameter["name"], parameter["schema"]), **parameter}
            for parameter in operation.get("parameters", ())
        ],
        "bodies": _list_contents(body),
        "fields": _list_fields(schemas[0]) if schemas else [],
        "answers": {
            status: {**response, "headers": list(response.get("headers", ())), "contents": _list_contents(response)}
            for status, response in responses.items()
            if status < "300"
        },
        "errors": {name: value["description"] for name, value in responses.items() if "300" <= name < "default"},
    }


def _list_contents(body: JsonObject) -> list[dict[str, Any]]:
    """Return the contents of a body, one for each schema: its media types, its name and an example."""
    contents: dict[str, dict[str, Any]] = {}
    for media_type, media in body.get("content", {}).items():
        name = media["schema"]["$ref"].rpartition("/")[2]
        example = _format_example(media.get("example"), indent=2)
        contents.setdefault(name, {"kinds": [], "shape": name, "example": example})["kinds"].append(media_type)
    return list(contents.values())


def _format_example(example: Any, indent: int | None = None) -> str:
    return example if isinstance(example, str) else json.dumps(example, ensure_ascii=False, indent=indent)


def _list_fields(schema: JsonObject) -> list[dict[str, Any]]:
    fields, required = schema.get("properties", {}), schema.get("required", ())
    return [{**_describe_field(name, value), "required": name in required} for name, value in fields.items()]


def _describe_field(name: str, schema: JsonObject) -> dict[str, Any]:
    """Return the description of a field, its type in words, and the schema that the words name, if any."""
    names = re.findall(r'"#/components/schemas/(\w+)"', json.dumps(schema))
    return {
        "name": name,
        "description": schema.get("description", ""),
        "inner": [_describe_field(field, value) for field, value in schema.get("properties", {}).items()],
        "kind": _format_type(schema),
        "shape": names[0] if names else None,
    }


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
    words = {"string": "text", "integer": "whole number", "boolean": "true or false"}
    name = str(schema.get("type", "anything"))
    limit = f", at most {schema['maxLength']:,} characters" if "maxLength" in schema else ""
    default = f", else {schema['default']}" if schema.get("default") else ""
    return words.get(name, name) + limit + default


def _resolve_ref(document: JsonObject, value: JsonObject) -> Any:
    while "$ref" in value:
        _, _, kind, name = value["$ref"].split("/")
        value = document["components"][kind][name]
    return value


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
        parts.append(f"--data-binary {shlex.quote(_format_example(content[media_type]['example']))}")
    is_default = method == "get" or (method == "post" and content)
    return f"curl {'' if is_default else f'-X {method.upper()} '}" + " \\\n  ".join(parts)


def _render_inline_code(text: str) -> Markup:
    """Return the text with what stands between backticks set as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704
