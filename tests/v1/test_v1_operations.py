"""The table of v1's operations, and the types that it shares with the client."""

from enum import StrEnum
from typing import Any, get_args

import pytest

from lexarium.client import models
from lexarium.domain import account, labels, proposal
from lexarium.domain.change import Action
from lexarium.domain.record import RecordState
from lexarium.web.v1.operations import OPERATIONS


@pytest.mark.parametrize(
    ("alias", "enumeration"),
    [
        (models.Action, Action),
        (models.State, RecordState),
        (models.Decision, proposal.ProposalState),
        (models.Role, account.Role),
        (models.Origin, account.Origin),
    ],
)
def test_a_literal_type_of_the_client_has_the_values_of_the_domain(alias: Any, enumeration: type[StrEnum]) -> None:
    assert list(get_args(alias.__value__)) == [member.value for member in enumeration]


def test_an_alias_type_of_the_client_has_the_scopes_of_the_domain() -> None:
    assert models.Alias.__annotations__["scope"] == labels.AliasScope


def test_no_operation_is_declared_twice() -> None:
    paths = [(operation.method, operation.path) for operation in OPERATIONS]
    names = [operation.name for operation in OPERATIONS]
    assert len(paths) == len(set(paths)) == len(set(names)) > 40


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_the_parameters_of_a_path_are_declared(operation: Any) -> None:
    declared = {info.alias or name for name, info in operation.parameters.model_fields.items()}
    assert operation.path_names <= declared
    assert all(info.description for info in operation.parameters.model_fields.values())
