"""Statements: what a record says. A record is a set of them.

In JSON, statements are an object of predicates, each with a list of values. A value is one of

- a text, an integer or a boolean;
- `{"text": …, "lang": …, "type": …}`, a text with a language or a datatype;
- `{"ref": …}`, a reference to a record, a CURIE or an IRI;
- `{"node": {…}, "iri": …}`, a nested node with statements of its own.

The last three may have `"qualifiers": {…}`, statements about the statement.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from lexarium.domain.identifiers import MAX_ID_BYTES, is_id_too_long
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.domain.text.languages import find_tag_problem

INTEGER = "xsd:integer"
BOOLEAN = "xsd:boolean"
_INTEGER_TEXT = re.compile("-?[0-9]+")

MAX_STATEMENTS = 10_000
MAX_DEPTH = 16

# Makes a named tuple in less than half the time that a call of its class takes, which would be most of the time of
# reading a record.
_new = tuple.__new__

StatementsJson: TypeAlias = dict[str, list[Any]]


class Text(NamedTuple):
    """Text with a language, or with a datatype, or with neither."""

    text: str
    # Canonical BCP 47 tag, or empty.
    lang: str = ""
    # CURIE or IRI; empty for a string.
    datatype: str = ""


class Reference(NamedTuple):
    """Id of a record, a CURIE or an IRI. It need not exist."""

    target: str


class Node(NamedTuple):
    """Nested node, such as a note with an author, with or without an IRI."""

    statements: tuple["Statement", ...]
    iri: str = ""


Value: TypeAlias = Text | Reference | Node


def drop_tag(value: Value, language: str) -> Value:
    """Return a value, without its tag if it is a text in this language: a text without one is in the default one."""
    return value._replace(lang="") if isinstance(value, Text) and value.lang == language else value


class Statement(NamedTuple):
    """Predicate and value, with statements about the statement."""

    # CURIE of the bundled prefixes, or IRI.
    predicate: str
    value: Value
    qualifiers: tuple["Statement", ...] = ()

    def to_value_json(self) -> Any:
        """Return the value and the qualifiers as JSON, in the shortest form."""
        data = _dump_value(self.value)
        if not self.qualifiers:
            return data
        if not isinstance(data, dict):
            data = {"text": data} if isinstance(data, str) else {"text": self.value[0], "type": self.value[-1]}
        return {**data, "qualifiers": dump_statements(self.qualifiers)}


class ValueIndex:
    """Statements by predicate and value. A text without a tag is one in the default language.

    Of several, the last with exactly the same value is found, else the last of all.
    """

    def __init__(self, statements: Iterable[Statement], language: str) -> None:
        """Index statements, given the default language."""
        items = list(statements)
        self._language = language
        self._statements = {(item.predicate, drop_tag(item.value, language)): item for item in items}
        self._statements |= {(item.predicate, item.value): item for item in items}

    def find(self, item: Statement) -> Statement | None:
        """Return the statement with the value of another."""
        found = self._statements.get((item.predicate, item.value))
        return found or self._statements.get((item.predicate, drop_tag(item.value, self._language)))


def dump_statements(statements: Iterable[Statement]) -> StatementsJson:
    """Return statements as JSON. The order of predicates and of their values is kept."""
    data: StatementsJson = {}
    for statement in statements:
        predicate, value, qualifiers = statement
        if isinstance(value, Text) and not qualifiers:
            data.setdefault(predicate, []).append(_dump_text(value))
        else:
            data.setdefault(predicate, []).append(statement.to_value_json())
    return data


def pack_statements(statements: Iterable[Statement]) -> dict[str, Any]:
    """Return statements as JSON in which a predicate with one value has no list, as stored."""
    return {
        predicate: values[0] if len(values) == 1 else values
        for predicate, values in dump_statements(statements).items()
    }


def load_statements(data: Mapping[str, Any]) -> tuple[Statement, ...]:
    """Return the statements of JSON that `dump_statements` or `pack_statements` made."""
    statements = []
    for predicate, values in data.items():
        # Most predicates have one text, integer or reference.
        if isinstance(values, str):
            statements.append(_new(Statement, (predicate, _new(Text, (values, "", "")), ())))
        elif type(values) is int:
            statements.append(_new(Statement, (predicate, _new(Text, (str(values), "", INTEGER)), ())))
        elif isinstance(values, list):
            statements += [load_statement(predicate, value) for value in values]
        else:
            statements.append(load_statement(predicate, values))
    return tuple(statements)


def parse_statements(data: Any, depth: int = 1) -> tuple[Statement, ...]:
    """Return the statements of JSON from elsewhere; raise ValueError, to follow a subject, if it is not valid."""
    if not isinstance(data, dict):
        raise ValueError("is not an object of predicates")
    if depth > MAX_DEPTH:
        raise ValueError(f"is nested more than {MAX_DEPTH} levels deep")
    for predicate in data:
        check_predicate(predicate)
    # Most predicates have one text. These are checked together.
    _check_text("".join([values for values in data.values() if isinstance(values, str)]))
    statements = []
    for predicate, values in data.items():
        if isinstance(values, str):
            statements.append(_new(Statement, (predicate, _new(Text, (values, "", "")), ())))
        else:
            items = values if isinstance(values, list) else (values,)
            statements += [_parse_statement(predicate, value, depth) for value in items]
    if depth == 1 and measure_statements(statements)[0] > MAX_STATEMENTS:
        raise ValueError(f"has more than {MAX_STATEMENTS:,} statements")
    return tuple(statements)


_VALUE_KEYS = ({"text"}, {"text", "lang"}, {"text", "type"}, {"ref"}, {"node"}, {"node", "iri"})


def _parse_statement(predicate: str, data: Any, depth: int) -> Statement:
    if isinstance(data, str):
        return Statement(predicate, Text(_check_text(data)))
    if isinstance(data, int):
        return load_statement(predicate, data)
    if not isinstance(data, dict) or data.keys() - {"qualifiers"} not in _VALUE_KEYS:
        raise ValueError(f"has a value of {predicate!r} that is not a text, number, reference or node")
    qualifiers = parse_statements(data["qualifiers"], depth + 1) if "qualifiers" in data else ()
    if "node" in data:
        node = Node(parse_statements(data["node"], depth + 1), _get_text(data, "iri"))
        return Statement(predicate, node, qualifiers)
    if "ref" in data:
        return Statement(predicate, Reference(_get_text(data, "ref")), qualifiers)
    lang = _get_text(data, "lang")
    if lang and find_tag_problem(lang):
        raise ValueError(f"has a text in the language {lang!r}, which is not a language tag")
    return Statement(predicate, Text(_get_text(data, "text"), lang, _get_text(data, "type")), qualifiers)


@lru_cache(maxsize=1_000)
def check_predicate(predicate: str) -> None:
    """Raise ValueError, to follow a subject, if a predicate is not valid."""
    if not predicate or is_id_too_long(_check_text(predicate)):
        raise ValueError(f"has a predicate that is empty or has more than {MAX_ID_BYTES} bytes")


def _get_text(data: Mapping[str, Any], key: str) -> str:
    text = data.get(key, "")
    if not isinstance(text, str):
        raise ValueError(f"has a {key!r} that is not text")
    return _check_text(text)


def _check_text(text: str) -> str:
    if char := find_unstorable_char(text):
        raise ValueError(f"contains the character {char}, which cannot be stored")
    return text


def normalize(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """Return statements without repetitions, those with one predicate together, qualifiers in a fixed order."""
    items = tuple(statements)
    # Most records have one plain value of each predicate.
    if len({item[0] for item in items}) == len(items) and all(map(_is_plain, items)):
        return items
    by_predicate: dict[str, dict[Statement, None]] = {}
    for item in items:
        by_predicate.setdefault(item.predicate, {})[item if _is_plain(item) else _normalize_parts(item)] = None
    return tuple(item for group in by_predicate.values() for item in group)


def _is_plain(statement: Statement) -> bool:
    return not statement[2] and not isinstance(statement[1], Node)


def measure_statements(statements: Iterable[Statement]) -> tuple[int, int]:
    """Return the number of statements, with those of nodes and qualifiers, and of the levels of nesting."""
    count, depth, level = 0, 0, [*statements]
    while level:
        count, depth = count + len(level), depth + 1
        level = _list_nested(level)
    return count, depth


def _list_nested(statements: Iterable[Statement]) -> list[Statement]:
    """Return the statements of the nodes and qualifiers of statements."""
    nested: list[Statement] = []
    for _, value, qualifiers in statements:
        if isinstance(value, Node):
            nested += value.statements
        if qualifiers:
            nested += qualifiers
    return nested


def _normalize_parts(statement: Statement) -> Statement:
    value = statement.value
    if isinstance(value, Node):
        value = Node(tuple(sorted(normalize(value.statements), key=repr)), value.iri)
    return Statement(statement.predicate, value, tuple(sorted(normalize(statement.qualifiers), key=repr)))


def _dump_value(value: Value) -> Any:
    if isinstance(value, Text):
        return _dump_text(value)
    if isinstance(value, Reference):
        return {"ref": value.target}
    node: dict[str, Any] = {"node": dump_statements(value.statements)}
    return {**node, "iri": value.iri} if value.iri else node


def _dump_text(value: Text) -> Any:
    text, lang, datatype = value
    if lang:
        return {"text": text, "lang": lang}
    if not datatype:
        return text
    # Only if the shorter form gives back the same text: `01` and `+1` are integers too.
    if datatype == INTEGER and len(text) < 16 and _INTEGER_TEXT.fullmatch(text) and str(int(text)) == text:
        return int(text)
    if datatype == BOOLEAN and text in ("true", "false"):
        return text == "true"
    return {"text": text, "type": datatype}


def load_statement(predicate: str, data: Any) -> Statement:
    """Return the statement of a value that `dump_statements` made."""
    if isinstance(data, str):
        return _new(Statement, (predicate, _new(Text, (data, "", "")), ()))
    if isinstance(data, bool):
        return Statement(predicate, Text("true" if data else "false", "", BOOLEAN))
    if isinstance(data, int):
        return Statement(predicate, Text(str(data), "", INTEGER))
    value: Value
    if "ref" in data:
        value = _new(Reference, (data["ref"],))
    elif "node" in data:
        value = Node(load_statements(data["node"]), data.get("iri", ""))
    else:
        value = _new(Text, (data["text"], data.get("lang", ""), data.get("type", "")))
    qualifiers = load_statements(data["qualifiers"]) if "qualifiers" in data else ()
    return _new(Statement, (predicate, value, qualifiers))
