"""YAML as a tree whose nodes know their lines.

The tree is built from events instead of PyYAML's `compose`, which crashes the process on deeply nested input.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

# A schema needs six levels.
MAX_DEPTH = 50
# Nodes of a schema, those that aliases repeat included: a schema with 2,000 slots has 30,000.
MAX_NODES = 200_000

# Libraries without libyaml have the slower loader alone.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class InvalidYaml(Exception):
    """Text is not valid YAML."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


class YamlScalar(NamedTuple):
    """Text, number, truth value or nothing."""

    line: int
    text: str
    is_plain: bool = True

    @property
    def is_null(self) -> bool:
        return self.is_plain and self.text in _NULLS

    def to_bool(self) -> bool | None:
        """Return the truth value, or None if it is none."""
        return _BOOLEANS.get(self.text.lower()) if self.is_plain else None


@dataclass
class YamlSequence:
    """List of nodes."""

    line: int
    items: list["YamlNode"] = field(default_factory=list)


@dataclass
class YamlMapping:
    """Keys with values, in order; a key may occur twice."""

    line: int
    entries: list[tuple[YamlScalar, "YamlNode"]] = field(default_factory=list)


YamlNode = YamlScalar | YamlSequence | YamlMapping


def parse_yaml(text: str, max_nodes: int = MAX_NODES) -> YamlNode | None:
    """Parse one YAML document; return None if it is empty. Raise `InvalidYaml` at the first syntax error."""
    try:
        return _TreeBuilder(yaml.parse(text, Loader=_LOADER), max_nodes).build()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        detail = f"{error.context}, {error.problem}" if error.context and error.problem else error.problem
        raise InvalidYaml(mark.line + 1 if mark else 1, f"Invalid YAML: {detail}.") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise InvalidYaml(line, f"Invalid YAML: the character U+{_get_code_point(error):04X} is not allowed.") from None
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise InvalidYaml(line, "Invalid YAML: it contains half of a surrogate pair.") from None


def _get_code_point(error: Any) -> int:
    """Return the character that the reader refused."""
    return ord(error.character) if isinstance(error.character, str) else int(error.character)


class _TreeBuilder:
    """Build the tree of one document."""

    def __init__(self, events: Iterator[Any], max_nodes: int) -> None:
        self._events = events
        self._max_nodes = max_nodes
        self._anchors: dict[str, YamlNode | None] = {}
        # Number of nodes so far, and of those below each anchor.
        self._node_count = 0
        self._sizes: dict[str, int] = {}

    def build(self) -> YamlNode | None:
        root: YamlNode | None = None
        document_count = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                document_count += 1
                if document_count > 1:
                    line = event.start_mark.line + 1
                    raise InvalidYaml(line, "A second document starts here; only one is supported.")
                root = self._build_node(next(self._events), 0)
        return root

    def _build_node(self, event: Any, depth: int) -> YamlNode:
        line = event.start_mark.line + 1
        if depth > MAX_DEPTH:
            raise InvalidYaml(line, f"Values are nested more than {MAX_DEPTH} deep.")
        if isinstance(event, yaml.AliasEvent):
            return self._resolve_alias(event.anchor, line)
        count_before = self._node_count
        self._count_nodes(1, line)
        if event.anchor:
            self._anchors[event.anchor] = None
        node: YamlNode
        if isinstance(event, yaml.ScalarEvent):
            node = YamlScalar(line, event.value, event.implicit[0])
        elif isinstance(event, yaml.SequenceStartEvent):
            node = YamlSequence(line)
            while not isinstance(child := next(self._events), yaml.SequenceEndEvent):
                node.items.append(self._build_node(child, depth + 1))
        else:
            node = self._build_mapping(line, depth)
        if event.anchor:
            self._anchors[event.anchor] = node
            self._sizes[event.anchor] = self._node_count - count_before
        return node

    def _count_nodes(self, count: int, line: int) -> None:
        self._node_count += count
        if self._node_count > self._max_nodes:
            raise InvalidYaml(line, f"The document has more than {self._max_nodes:,} values.")

    def _build_mapping(self, line: int, depth: int) -> YamlMapping:
        mapping = YamlMapping(line)
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._build_node(event, depth + 1)
            if not isinstance(key, YamlScalar):
                raise InvalidYaml(key.line, "A key must be text.")
            mapping.entries.append((key, self._build_node(next(self._events), depth + 1)))
        return mapping

    def _resolve_alias(self, anchor: str, line: int) -> YamlNode:
        if anchor not in self._anchors:
            raise InvalidYaml(line, f"The alias *{anchor} has no anchor &{anchor} before it.")
        node = self._anchors[anchor]
        if node is None:
            raise InvalidYaml(line, f"The alias *{anchor} refers to a value that contains it.")
        self._count_nodes(self._sizes[anchor], line)
        return node
