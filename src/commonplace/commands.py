"""What Claude sent -> the documented fields of one command, or a refusal that names the field that is wrong.

All forgiveness is here, and it is this: `insert_text` may arrive as `new_str` and `old_path` as `path`; a whole number
may arrive as a float (`2.0`) or as ASCII digits (`"2"`). A boolean is not a number. Null is the same as leaving a field
out, and fields that the command does not have are ignored. The API does not validate what the model writes for this
tool, and neither does the SDK, so nothing may be taken for granted.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from commonplace import messages
from commonplace.errors import Refused

# Python itself refuses to read a number of more than 4,300 digits.
_DIGITS = re.compile(r"-?[0-9]{1,4000}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a command: how to check it, what it must be in words, and what else models call it."""

    check: Callable[[str, object], object]
    kind: str
    required: bool = True
    alias: str | None = None


def parse(command: object) -> tuple[str, dict[str, Any]]:
    """Return the name of the command and its fields under their documented names, checked for type.

    Raises Refused for what is not an object, an unknown command, and a missing or mistyped field.
    """
    if not isinstance(command, dict) and not isinstance(command, Mapping):  # the first is the case, and faster
        found = messages.kind_of(command)
        raise Refused(messages.INPUT_NOT_AN_OBJECT.format(commands=_NAMES, found=found))
    name = command.get("command")
    if name is None:
        raise Refused(messages.COMMAND_MISSING.format(commands=_NAMES))
    if not isinstance(name, str) or name not in COMMANDS:
        raise Refused(messages.COMMAND_UNKNOWN.format(found=messages.shown(name), commands=_NAMES))
    fields = {}
    for key, field in COMMANDS[name].items():
        value = command.get(key)
        if value is None and field.alias is not None:
            value = command.get(field.alias)
        if value is not None:
            fields[key] = field.check(key, value)
        elif field.required:
            raise Refused(messages.FIELD_MISSING.format(field=key, command=name, kind=field.kind))
    return name, fields


def whole_number(value: object) -> int | None:
    """Return an integer however it was written, or None where the value is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    return None


def _string(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise _mistyped(field, messages.A_STRING, value)
    return value


def storable(field: str, value: object) -> str:
    """Return a text that a memory can hold, or refuse it, naming the field, before anything is done."""
    text = _string(field, value)
    if "\0" in text:
        raise Refused(messages.FIELD_NOT_TEXT.format(field=field, what=messages.NUL))
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refused(messages.FIELD_NOT_TEXT.format(field=field, what=messages.SURROGATE)) from None
    return text


def _integer(field: str, value: object) -> int:
    number = whole_number(value)
    if number is None:
        raise _mistyped(field, messages.A_WHOLE_NUMBER, value)
    return number


def _anything(field: str, value: object) -> object:
    return value


def _mistyped(field: str, kind: str, value: object) -> Refused:
    return Refused(messages.FIELD_MISTYPED.format(field=field, kind=kind, found=messages.shown(value)))


_PATH = Field(_string, messages.A_PATH)
_TEXT = Field(storable, messages.A_STRING)

COMMANDS: dict[str, dict[str, Field]] = {
    # A view_range is looked at only once it is known that the path is no directory, where it means nothing.
    "view": {"path": _PATH, "view_range": Field(_anything, messages.A_RANGE, required=False)},
    "create": {"path": _PATH, "file_text": _TEXT},
    "str_replace": {"path": _PATH, "old_str": _TEXT, "new_str": replace(_TEXT, required=False)},
    "insert": {
        "path": _PATH,
        "insert_line": Field(_integer, messages.A_WHOLE_NUMBER),
        "insert_text": replace(_TEXT, alias="new_str"),
    },
    "delete": {"path": _PATH},
    "rename": {"old_path": replace(_PATH, alias="path"), "new_path": _PATH},
}

_NAMES = ", ".join(COMMANDS)
