"""The server's log: one JSON object a line, or readable text on a terminal."""

import logging
from typing import Any

import orjson

from lexarium.domain.stamps import text_of


class JsonFormatter(logging.Formatter):
    """A record of the log as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": text_of(int(record.created * 1000)) + "Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _encodable(record.getMessage()),
        }
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["trace"] = _encodable(self.formatException(record.exc_info))
        return orjson.dumps(line, option=orjson.OPT_NON_STR_KEYS).decode()


class TextFormatter(logging.Formatter):
    """A record of the log as a line that people read; only a trace has several."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - as it is called there
        record.message = "".join(each if each.isprintable() else repr(each)[1:-1] for each in record.message)
        return super().formatMessage(record)


class Seldom(logging.Filter):
    """Lets a logger say something once a second: while a database is away every request has the same to say."""

    _next = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        wanted = record.created >= self._next
        if wanted:
            self._next = record.created + 1
        return wanted


def _encodable(text: str) -> str:
    """The text; what of it no encoding can hold, such as a byte of a file's name that was not UTF-8, is spelt out."""
    return text.encode("utf-8", "backslashreplace").decode()


def logging_config(kind: str, terminal: bool) -> dict[str, Any]:
    """How Python's logging shall be set up; `kind` is the setting `log`."""
    as_text = kind == "text" or (kind == "auto" and terminal)
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "text": {"()": "lexarium.web.logs.TextFormatter", "format": "%(asctime)s %(levelname)s %(message)s"},
            "json": {"()": "lexarium.web.logs.JsonFormatter"},
        },
        "filters": {"seldom": {"()": "lexarium.web.logs.Seldom"}},
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": "text" if as_text else "json"},
        },
        "root": {"handlers": ["stderr"], "level": "INFO"},
        "loggers": {
            # What uvicorn says of its starting and stopping helps nobody.
            "uvicorn.error": {"level": "WARNING"},
            "alembic": {"level": "WARNING"},
            "lexarium.web.problems": {"filters": ["seldom"]},
        },
    }
