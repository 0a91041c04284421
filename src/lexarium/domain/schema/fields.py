"""Record models of the Cognitive Atlas.

Fields are rendered in this order. A term starts with the fields of a search hit, so that a hit is a prefix of it.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from lexarium.domain.identifiers import SYSTEM_USER_ID
from lexarium.domain.text.limits import get_input_limits

Fields = dict[str, Any]


@dataclass(frozen=True)
class Editable:
    """Annotation of a field that people edit. The server sets all others."""

    # Maximum length: a number, or the name of one of InputLimits.
    limit: int | Literal["name", "alias", "definition"] | None = None

    @property
    def max_length(self) -> int | None:
        """Maximum number of characters, or None if the field is not a text."""
        max_length: int | None = getattr(get_input_limits(), self.limit) if isinstance(self.limit, str) else self.limit
        return max_length


@dataclass(frozen=True)
class IdReference:
    """Annotation of a field that holds an id with a prefix, and of a record if a collection is given."""

    prefix: str
    collection: str | None = None


class TimestampText:
    """Annotation of a text field that holds a timestamp."""


Name = Annotated[str, Editable("name")]
ClassId = Annotated[
    str,
    Editable(100),
    IdReference("ctp", "concept_class"),
    Field(description="Identifier of the concept class, `ctp_<suffix>`. Empty where the record has no class."),
]
CreationTime = Annotated[int, Field(description="When the record was created, in milliseconds since the Unix epoch.")]
UpdateTime = Annotated[int, Field(description="When the record was last updated, in the same unit as creation_time.")]
OwnerId = Annotated[
    str,
    IdReference("usr"),
    Field(description="User who owns the record, `usr_<suffix>`. A suffix of zeros stands for the system itself."),
]
TimestampStr = Annotated[
    str,
    TimestampText(),
    Field(description="When the record was created: ISO 8601 `YYYY-MM-DDThh:mm:ss`, UTC, no zone designator."),
]


class SearchHit(BaseModel):
    """A term as a search shows it."""

    id: str = Field(description="Identifier of the term, `trm_<suffix>`.")
    name: Name = Field(description="Name of the term.")
    definition_text: Annotated[str, Editable("definition")] = Field(
        "", description="Definition: free text, perhaps with line breaks, perhaps only a placeholder, perhaps empty."
    )
    alias: Annotated[str, Editable("alias")] = Field(
        "", description="Other names in one string, separated by commas or semicolons. Empty where there are none."
    )


class Term(SearchHit):
    """A concept or a task."""

    id: str = Field(description="Identifier `trm_<suffix>`; some tasks have `tsk_<suffix>`.")
    id_concept_class: ClassId = ""
    id_user: OwnerId = SYSTEM_USER_ID
    event_stamp: TimestampStr
    def_id: Annotated[str, IdReference("def")] = Field(description="Identifier of the definition, `def_<suffix>`.")
    def_id_user: Annotated[str, IdReference("usr")] = Field(
        SYSTEM_USER_ID, description="Author of the definition, `usr_<suffix>`."
    )
    def_event_stamp: Annotated[str, TimestampText()] = Field(
        description="When the definition was written, in the form of event_stamp."
    )
    creation_time: CreationTime
    last_updated: UpdateTime


class Disorder(BaseModel):
    """A disorder."""

    id: str = Field(description="Identifier `dso_<suffix>`.")
    name: Name = Field(description="Name of the disorder.")
    definition: Annotated[str, Editable("definition")] = Field("", description="Definition, perhaps empty.")
    id_protocol: Annotated[str, Editable(50)] = Field(
        "", description="Short code of the source vocabulary the record comes from."
    )
    id_user: OwnerId = SYSTEM_USER_ID
    event_stamp: TimestampStr
    flag_for_curator: Annotated[int, Editable()] = Field(
        0, description="1 waits for a curator's look, 0 does not; other integers are kept as they come."
    )


class Contrast(BaseModel):
    """A comparison of conditions within a task, by which concepts are measured."""

    id: str = Field(description="Identifier `cnt_<suffix>`.")
    name: Name = Field(description="Name of the contrast.")
    id_user: OwnerId = SYSTEM_USER_ID
    event_stamp: TimestampStr
    creation_time: CreationTime
    last_updated: UpdateTime


class ConceptClass(BaseModel):
    """A class that concepts and tasks are sorted into."""

    id: str = Field(description="Identifier `ctp_<suffix>`.")
    name: Name = Field(description="Name of the class.")
    description: Annotated[str, Editable("definition")] = Field("", description="What the class holds.")
