"""HTML of the relations of a record: as a list, as a graph and as a tree. Templates take several times as long."""

from collections.abc import Iterable, Mapping

from markupsafe import Markup

from lexarium.domain.identifiers import get_local_id
from lexarium.domain.schema.collections import RELATION_TYPES, Collection
from lexarium.domain.text.markup import decode_entities
from lexarium.domain.text.numbers import format_count
from lexarium.services.records.hierarchy import Branch, Hierarchy
from lexarium.services.records.relation_groups import RelatedItem, RelationGroup
from lexarium.web.pages.charts.relation_graph import GraphGroup, GraphNode, RelationGraph
from lexarium.web.statement_html import format_value
from lexarium.web.template_filters import (
    browse_path,
    escape_text,
    format_number,
    link_outside,
    link_record,
    quote_path,
    record_path,
)

# Of a long group the first records are shown, and the others are folded.
_FOLDED_AFTER = 12


def format_relations(groups: Iterable[RelationGroup]) -> Markup:
    """Return relations by type, as items of a definition list."""
    return Markup("".join(map(_build_group, groups)))  # noqa: S704 (escaped)


def _build_group(group: RelationGroup) -> str:
    items, count = group.items, len(group.items)
    css_class = "bare" if any(item.relations for item in items) else "flow"
    title = f' title="{escape_text(group.description)}"' if group.description else ""
    total = f' <span class="faint">{format_number(group.total)}</span>' if group.total > _FOLDED_AFTER else ""
    parts = [
        f"  <dt{title}>{link_outside(group.label, group.link)}{total}</dt>\n  <dd>\n",
        f'    <ul class="{css_class}">',
        *map(_build_item, items[:_FOLDED_AFTER]),
        *(f"<li>{format_value(value)}</li>" for value in group.elsewhere),
        "</ul>\n",
    ]
    if count > _FOLDED_AFTER:
        more = format_count(count - _FOLDED_AFTER, "more", "more")
        parts += [
            f'    <details><summary>Show {more}</summary><ul class="{css_class}">',
            *map(_build_item, items[_FOLDED_AFTER:]),
            "</ul></details>\n",
        ]
    if group.total > count:
        parts.append(f'<p class="faint">and {format_number(group.total - count)} more</p>')
    parts.append("  </dd>\n")
    return "".join(parts)


def _build_item(item: RelatedItem) -> str:
    link = link_record(item.id, item.name)
    return f"<li>{link} {_build_details(item)}</li>" if item.relations else f"<li>{link}</li>"


def _build_details(item: RelatedItem) -> str:
    lines = []
    for label, others in item.relations.items():
        links = ", ".join([link_record(other.id, other.name) for other in others[:_FOLDED_AFTER]])
        more = f" and {len(others) - _FOLDED_AFTER} more" if len(others) > _FOLDED_AFTER else ""
        lines.append(f'<li><span class="faint">{escape_text(label)}</span> {links}{more}</li>')
    return f'<ul class="details">{"".join(lines)}</ul>'


def format_graph_groups(graph: RelationGraph) -> Markup:
    """Return the groups of a graph of relations, as SVG."""
    return Markup("".join([_build_graph_group(graph, group) for group in graph.groups]))  # noqa: S704 (escaped)


def _build_graph_group(graph: RelationGraph, group: GraphGroup) -> str:
    css_class = "" if group.is_hierarchical else ' class="loose"'
    lines = "".join([f'<path d="{node.path}"/>' for node in group.nodes])
    nodes = "".join([_build_node(graph, node) for node in group.nodes])
    hidden = (
        f'<text class="label" x="{group.x}" y="{group.hidden_y}">and {format_number(group.hidden_count)} more</text>'
        if group.hidden_count
        else ""
    )
    return (
        f'    <g data-side="{group.side}" data-hidden="{group.hidden_count}"{css_class}>\n{lines}'
        f'      <text class="label" x="{group.x}" y="{group.y}">{escape_text(group.label)}</text>\n'
        f"{nodes}{hidden}    </g>\n"
    )


def _build_node(graph: RelationGraph, node: GraphNode) -> str:
    width, height = graph.node_size
    name, text = (escape_text(decode_entities(item)) for item in (node.name, node.text))
    return (
        f'      <a href="{record_path(node.id)}"><title>{name}</title>'
        f'<rect x="{node.x}" y="{node.y}" width="{width}" height="{height}" rx="8"/>'
        f'<text x="{node.x + 12}" y="{node.y + 20}">{text}</text></a>\n'
    )


def format_tree(hierarchy: Hierarchy, collection: Collection) -> Markup:
    """Return the items of the tree around a record of a collection, if there is one."""
    if hierarchy.tree is None:
        return Markup()
    has_several_types = len(hierarchy.type_names) > 1
    labels = {name: RELATION_TYPES[name].label for name in collection.hierarchical_types if has_several_types}
    return Markup(_build_branch(hierarchy.tree, collection.name, labels))  # noqa: S704 (escaped)


def _build_branch(branch: Branch, collection: str, labels: Mapping[str, str]) -> str:
    if branch.is_current:
        shown = f'<strong aria-current="page">{escape_text(decode_entities(branch.name))}</strong>'
    else:
        shown = link_record(branch.id, branch.name)
    label = (
        f' <span class="faint">{escape_text(labels[branch.type_name])}</span>' if labels and branch.type_name else ""
    )
    return f"<li>\n{shown}{label}{_build_children(branch, collection, labels)}</li>\n"


def _build_children(branch: Branch, collection: str, labels: Mapping[str, str]) -> str:
    """Return the children that are loaded, or where scripts find them. Without scripts, links lead to each level."""
    if not branch.children and not branch.has_children:
        return ""
    items = "".join([_build_branch(child, collection, labels) for child in branch.children or ()])
    if items and not branch.has_more:
        return f"  <ul>\n{items}  </ul>\n"
    local_id = get_local_id(branch.id)
    level = escape_text(browse_path(collection, f"tree/{quote_path(local_id)}"))
    path = escape_text(browse_path(collection, "tree", at=local_id))
    name = f'<span class="unseen"> of {escape_text(decode_entities(branch.name))}</span>'
    if items:
        more = f'<li><a class="more" href="{path}" data-level="{level}">All children{name}</a></li>'
        return f"  <ul>\n{items}{more}  </ul>\n"
    summary = f'<span class="unseen">Children of {escape_text(decode_entities(branch.name))}</span>'
    return (
        f'  <details data-level="{level}">\n    <summary>{summary}</summary>\n'
        f'    <p><a href="{path}">Show children{name}</a></p>\n  </details>\n'
    )
