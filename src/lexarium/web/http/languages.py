"""Languages that a request asks for, and headers of responses in them."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request

from lexarium.domain.errors import FieldProblem, InvalidInput
from lexarium.domain.text.languages import find_tag_problem, format_tag, parse_accept_language
from lexarium.services.record_serializer import get_shown_language


def get_languages(request: Request) -> tuple[str, ...]:
    """Return the language in `lang`, else those in `Accept-Language`, best first; raise InvalidInput."""
    lang = request.query_params.get("lang")
    if lang is None:
        return parse_accept_language(request.headers.get("accept-language"))
    problem = find_tag_problem(lang)
    if problem:
        raise InvalidInput("Invalid request.", [FieldProblem("lang", f"is invalid: {problem}")])
    return (format_tag(lang),)


def describe_languages(
    request: Request, languages: Sequence[str], records: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    """Return the headers of serialized records in the languages that a request asks for, if it asks for any."""
    tags = dict.fromkeys(filter(None, map(get_shown_language, records))) if languages else ()
    return {**vary_by_language(request), **({"content-language": ", ".join(tags)} if tags else {})}


def vary_by_language(request: Request) -> dict[str, str]:
    """Return the header of a response that depends on the languages of its reader, unless the address names one."""
    return {} if "lang" in request.query_params else {"vary": "Accept-Language"}
