"""What the model wrote -> the key a store may see, or a refusal. The one gate; nothing else looks at a path's spelling.

The rule of this file: refuse, never repair. Only a trailing `/` and doubled ones are forgiven, and they mean nothing.
A key (`notes/tea.md`) has no leading slash; the key of `/memories` itself is the empty string.

Sources: the documentation's security considerations (traversal, URL-encoded traversal) and the path rules of the hosted
Memory Stores API (NFC, no control or format characters, 20 segments, 1,024 bytes), so that a key is legal there too.
"""

import re
from unicodedata import category, is_normalized, normalize

from commonplace import messages
from commonplace.errors import Refused
from commonplace.store import RESERVED

ROOT = "/memories"
MAX_BYTES = 1024
MAX_SEGMENTS = 20
MAX_SEGMENT_BYTES = 255

# Control and format characters, surrogates, and the line and paragraph separators U+2028 and U+2029.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})

# Unicode's Default_Ignorable_Code_Point, as far as it is not a format character: variation selectors and fillers.
_SHOWING_NOTHING = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)

# Ordinary paths pass in one match. What does not match is not refused, only looked at character by character.
_ORDINARY = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,254}(?:/[A-Za-z0-9_-][A-Za-z0-9._-]{0,254}){0,19}")


def parse(path: str) -> str:
    """Return the key for a path as Claude writes it, `""` for `/memories` itself.

    Raises Refused, with words that say what to do, for a path that is not below `/memories` or not plainly spelled.
    """
    if path != ROOT and not path.startswith(ROOT + "/"):
        raise _refused(path, messages.PATH_OUTSIDE)
    key = path[len(ROOT) + 1 :]
    if len(path) <= MAX_BYTES and _ORDINARY.fullmatch(key):
        return key
    segments = [segment for segment in key.split("/") if segment]
    if objection := _objection(segments):
        raise _refused(path, objection)
    return "/".join(segments)


def show(key: str) -> str:
    """Return a key the way Claude writes it: `/memories/notes/tea.md`."""
    return f"{ROOT}/{key}" if key else ROOT


def is_key(key: str) -> bool:
    """Tell whether `parse` can return this key, that is, whether Claude has a way to name what lies there."""
    if _ORDINARY.fullmatch(key):
        return len(ROOT) + 1 + len(key) <= MAX_BYTES
    return _objection(key.split("/")) is None


def _refused(path: str, reason: str) -> Refused:
    return Refused(messages.PATH_REFUSED.format(path=messages.printable(path), reason=reason))


def _objection(segments: list[str]) -> str | None:
    """Return why a path of these segments is refused, or None where it is not."""
    # Lengths first: whatever else is looked at takes longer the longer a name is.
    if any(len(segment) > MAX_SEGMENT_BYTES for segment in segments):
        return messages.PATH_LONG_NAME
    if len(segments) > MAX_SEGMENTS:
        return messages.PATH_DEEP
    for segment in segments:
        if objection := _misspelling(segment):
            return objection
        if not is_normalized("NFC", segment):
            return messages.PATH_NOT_NFC
        if _hides_something(segment):
            return messages.PATH_ENCODED
        if len(segment.encode()) > MAX_SEGMENT_BYTES:
            return messages.PATH_LONG_NAME
    if len(show("/".join(segments)).encode()) > MAX_BYTES:
        return messages.PATH_LONG
    if segments and _folded(segments[0]) == RESERVED:
        return messages.PATH_RESERVED
    return None


def _misspelling(segment: str) -> str | None:
    """Return why one name is refused for the characters in it, or None."""
    if "\\" in segment:
        return messages.PATH_BACKSLASH
    if any(category(c) in _INVISIBLE for c in segment):
        return messages.PATH_CHARACTERS
    if _only_dots(segment):
        return messages.PATH_DOTS
    folded = normalize("NFKC", segment)
    if "/" in folded or "\\" in folded or _only_dots(folded):
        return messages.PATH_LOOKALIKE
    return None


def _only_dots(segment: str) -> bool:
    return all(c == "." or c.isspace() for c in segment)


def _folded(segment: str) -> str:
    """Return the name that a file system without case, and blind to characters that show nothing, takes this for."""
    return _SHOWING_NOTHING.sub("", normalize("NFKC", segment)).casefold()


def _hides_something(segment: str) -> bool:
    """Tell whether decoding the percent escapes, again and again, uncovers what a name cannot hold."""
    text = normalize("NFKC", segment)  # a full-width percent sign is one as well
    if "%" not in text:
        return False
    from urllib.parse import unquote_to_bytes  # seldom needed, and not cheap to import

    while True:
        try:
            decoded = normalize("NFKC", unquote_to_bytes(text).decode())
        except UnicodeDecodeError:
            return True
        if decoded == text:
            return False
        if _misspelling(decoded) or _folded(decoded) == RESERVED:
            return True
        text = decoded
