"""Carry settings that described the catalogue, before vocabularies had head records, over into that of the main one."""

from lexarium.domain.identifiers import MAIN_VOCABULARY, SYSTEM_USER_ID
from lexarium.domain.vocabulary import VOCABULARIES, check_values
from lexarium.services.vocabularies.head_records import get_version, update_vocabulary
from lexarium.settings import METADATA_SETTINGS, Settings, format_variable
from lexarium.store.database import Database
from lexarium.store.transaction import Transaction


def carry_settings_over(database: Database, settings: Settings) -> str | None:
    """Put metadata settings into the head record of the main vocabulary if it has none; return a message about them.

    Settings that differ from an existing head record no longer count, and the message says so.
    """
    values = settings.metadata_values
    if not values:
        return None

    def save(transaction: Transaction) -> bool:
        if get_version(transaction.flush(), MAIN_VOCABULARY):
            return False
        update_vocabulary(transaction, SYSTEM_USER_ID, MAIN_VOCABULARY, values)
        return True

    if not database.run_read(get_version, MAIN_VOCABULARY) and database.run_write(save):
        names = _join_variables(list(values))
        return f"Copied to the vocabulary {MAIN_VOCABULARY}: {names}. Change it there with `lexarium vocabulary set`."
    current = VOCABULARIES[MAIN_VOCABULARY].to_values()
    checked = check_values(MAIN_VOCABULARY, values, ())
    ignored = [key for key, value in checked.items() if current[key] != value]
    if not ignored:
        return None
    way = f"use `lexarium vocabulary set {MAIN_VOCABULARY} {ignored[0]}=VALUE` instead"
    return f"Ignored, because the vocabulary {MAIN_VOCABULARY} has its own value: {_join_variables(ignored)}; {way}."


def _join_variables(keys: list[str]) -> str:
    return ", ".join(format_variable(name) for name, key in METADATA_SETTINGS.items() if key in keys)
