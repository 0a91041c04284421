"""Which records are meant that files call by names of their own: the same ones at every import."""

from collections.abc import Sequence

from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.identifiers import mint
from lexarium.domain.relations import EXACT, RELATIONS, Edge
from lexarium.exchange.notions import label_of
from lexarium.service.reports import Notes, Report
from lexarium.store import edges, records, upstream
from lexarium.store.backend import Snapshot
from lexarium.store.records import BATCH
from lexarium.store.staging import Named, Stage


def may_be_name(text: str) -> bool:
    """Whether a text that names a record may be no id of ours, but an IRI or a CURIE, or stands for its name."""
    return ":" in text or label_of(text) is not None


def identify(snapshot: Snapshot, stage: Stage, report: Report) -> None:
    """Put ids in place of names in a stage: of the records that are known by them, else new ones.

    Records that have to be left out, and edges to what nobody knows, are told of.
    """
    warnings = report.warnings
    for some in stage.names(BATCH):
        stage.identify(_found(snapshot, stage, some, warnings))
    second = (name for identifier, names in stage.shared() for name in _second(snapshot, identifier, names))
    for name, identifier, where in stage.leave_out(second):
        what = f"{name} is {identifier} in the catalogue, and so is another of this import; this one is left out"
        warnings.add(where, what)
        report.refused += 1
        report.show("refused", identifier, (label_of(name) or ("", ""))[0], _shown(name))
    for edge, where, by_hand in stage.settle_names(EXACT.name):
        what = f"{_sentence(edge)} is left out: one of the two is in neither the import nor the catalogue"
        warnings.add(where, f"{what}; those of this kind that are there stay" if by_hand else what)


def _found(snapshot: Snapshot, stage: Stage, some: Sequence[Named], warnings: Notes) -> dict[str, str]:
    names = [each.name for each in some if each.label is None]
    found = {name: name for name in records.existing(snapshot, names)}
    collections = {each.name: each.collection for each in some}
    for name, matches in edges.matched(snapshot, names).items():
        wanted = collections[name] or matches[0].collection
        several = [match.id for match in matches if match.collection == wanted]
        if several:
            found.setdefault(name, several[0])
        if len(several) > 1:
            warnings.add(name, f"is an exact match of {', '.join(several)}; {found[name]} is taken for it")
        for match in matches:
            if match.collection != wanted:
                warnings.add(name, f"is an exact match of {match.id}, which is a {match.collection}, not a {wanted}")
    for collection in COLLECTIONS:
        labels = {
            key: each.name for each in some for kind, key in [label_of(each.name) or ("", "")] if kind == collection
        }
        called = records.called(snapshot, collection, list(labels)) if labels else {}
        found |= {labels[label]: identifier for label, identifier in called.items()}
    for each in some:
        if each.collection is not None and each.name not in found:
            found[each.name] = mint(COLLECTIONS[each.collection].prefixes[0])
    return found


def _second(snapshot: Snapshot, identifier: str, names: Sequence[str]) -> list[str]:
    """Of names that are all one record: those that it did not have from an import, but from a merge or a curator.

    All but the first where that does not tell them apart.
    """
    change = upstream.last_imported(snapshot, [identifier]).get(identifier)
    told = upstream.untaken(snapshot, [identifier]).get(identifier, {}).get("relations")
    if told is None:
        told = {} if change is None else change.whole().relations
    own = [name for name in names if name in told.get(EXACT.name, ())] or list(names)
    return [name for name in names if name != own[0]]


def _sentence(edge: Edge) -> str:
    return f"{_shown(edge.source)} {RELATIONS[edge.relation].label} {_shown(edge.target)}"


def _shown(name: str) -> str:
    label = label_of(name)
    return name if label is None else repr(label[1])
