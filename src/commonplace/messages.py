"""Every sentence the memory tool says, in the order of the documentation's page.

https://platform.claude.com/docs/en/agents-and-tools/tool-use/memory-tool

The first part is the documentation's, word for word: with and without `Error: `, with and without a final full stop,
exactly as the page has them, because these are the strings Claude is used to. The second part is ours, for the cases in
which the page is silent. No sentence that Claude reads is written anywhere else.
"""

# --- The documentation's ---------------------------------------------------------------------------------------------

# view
VIEW_DIRECTORY = (
    "Here're the files and directories up to 2 levels deep in {path}, excluding hidden items and node_modules:"
)
VIEW_MEMORY = "Here's the content of {path} with line numbers:"
VIEW_MISSING = "The path {path} does not exist. Please provide a valid path."
VIEW_TOO_MANY_LINES = "File {path} exceeds maximum line limit of 999,999 lines."

# create
CREATED = "File created successfully at: {path}"
EXISTS = "Error: File {path} already exists"

# str_replace
REPLACED = "The memory file has been edited."
REPLACE_MISSING = "Error: The path {path} does not exist. Please provide a valid path."
REPLACE_NO_MATCH = "No replacement was performed, old_str `{old_str}` did not appear verbatim in {path}."
REPLACE_MANY_MATCHES = (
    "No replacement was performed. Multiple occurrences of old_str `{old_str}` in lines: {line_numbers}. "
    "Please ensure it is unique"
)

# insert
INSERTED = "The file {path} has been edited."
INSERT_LINE = (
    "Error: Invalid `insert_line` parameter: {insert_line}. "
    "It should be within the range of lines of the file: [0, {n_lines}]"
)

# insert, delete and rename
MISSING = "Error: The path {path} does not exist"

# delete
DELETED = "Successfully deleted {path}"

# rename
RENAMED = "Successfully renamed {old_path} to {new_path}"
DESTINATION_EXISTS = "Error: The destination {new_path} already exists"

# The page has no words for these two; the Python SDK's own tool has.
DELETE_ROOT = "Cannot delete the /memories directory itself"
RENAME_ROOT = "Cannot rename the /memories directory itself"

# --- Ours ------------------------------------------------------------------------------------------------------------

# view
VIEW_RANGE = (
    "Error: Invalid `view_range` parameter: {view_range}. "
    "It should be [start, end] with 1 <= start <= end <= {n_lines}, or end -1 for the last line"
)
LINES_SHOWN = "[Lines {first}-{last} of {n_lines} are shown. View with view_range to see more, for example {example}.]"
LINE_CUT = (
    "[Line {line} of {n_lines} has {length} characters; only its first {shown} are shown. "
    "View with view_range to see other lines.]"
)
ENTRIES_SHOWN = "[{shown} of {total} entries are shown. {way_on}.]"
VIEW_SUBDIRECTORY = "View a sub-directory to see more, for example {example}"
USE_SUBDIRECTORIES = "Keep memories in sub-directories to see them all"

# create and rename
NOT_A_DIRECTORY = "Error: The path {path} is not a directory"
INTO_ITSELF = "Error: Cannot rename {old_path} to {new_path}: a path cannot be moved into itself"

# str_replace
REPLACE_EMPTY = "No replacement was performed. `old_str` must not be empty."

# str_replace and insert
KEEPS_CHANGING = (
    "Error: The file {path} keeps being changed by others, so this edit was not made. View it and try again"
)

# input
INPUT_NOT_AN_OBJECT = "Error: The input must be an object whose `command` is one of {commands}, not {found}"
COMMAND_MISSING = "Error: The field `command` is missing. It must be one of {commands}"
COMMAND_UNKNOWN = "Error: Unknown command {found}. It must be one of {commands}"
FIELD_MISSING = "Error: The field `{field}` is missing: the {command} command needs {kind}"
FIELD_MISTYPED = "Error: The field `{field}` must be {kind}, not {found}"
FIELD_NOT_TEXT = "Error: The field `{field}` holds {what}, which a memory cannot hold. Nothing was changed"
A_STRING = "a string"
A_PATH = "a string such as /memories/notes.md"
A_WHOLE_NUMBER = "a whole number"
A_RANGE = "[start, end]"
NUL = "a NUL character"
SURROGATE = "half of a character (a surrogate)"
LINE_NOT_JSON = "Error: This line is not JSON. Send one tool_use block or one command as a JSON object per line"

# paths
PATH_REFUSED = "Error: The path {path} is not allowed: {reason}"
PATH_OUTSIDE = "every path must be /memories or start with /memories/"
PATH_DOTS = "a name cannot consist of dots and spaces only, so leave out . and .. and write the path in full"
PATH_BACKSLASH = "use / between names, not a backslash"
PATH_CHARACTERS = "names cannot hold control or invisible formatting characters"
PATH_LOOKALIKE = "a name holds a character that stands for a separator or dots. Use ordinary letters"
PATH_NOT_NFC = "write it in Unicode normal form NFC (composed characters)"
PATH_ENCODED = "it hides a separator, dots or unreadable bytes behind % escapes. Write the characters themselves"
PATH_LONG_NAME = "a name can be at most 255 bytes long"
PATH_DEEP = "it can be at most 20 names deep"
PATH_LONG = "it can be at most 1,024 bytes long"
PATH_RESERVED = "the name .commonplace at the top is kept for the memory store itself"

# what a store cannot hold or read
NOT_UTF8 = "Error: This is not a text file: its bytes are not UTF-8. It can be renamed or deleted, not viewed or edited"
KEEPS_MOVING = "Error: What is at this path keeps being changed or moved by others. Try again"
NOT_REGULAR = (
    "Error: There is something here that is not an ordinary file (a link, perhaps). The memory store leaves it alone"
)
TOO_LARGE = (
    "Error: A file can hold at most {limit} bytes in this memory store, and this one would hold more, or does already"
)

# what the operating system or a server refuses
PERMISSION_DENIED = "Error: The memory store is not permitted to do this (permission denied). Nothing was changed"
READ_ONLY = "Error: The memory store is read-only at the moment. Nothing was changed"
STORE_FULL = "Error: The memory store has no space left. Nothing was changed; deleting what is not needed may help"
MOUNTED = "Error: This is a mount point, in use by the system, or on another disk. Nothing was changed"
NAME_TOO_LONG = "Error: The memory store cannot hold a name this long. Use shorter names"
STORE_GONE = (
    "Error: The memory store's directory has been removed, so nothing can be read or saved until it is opened again"
)
STORE_FAILED = "Error: The memory store failed to read or write. View the path before trying again: nothing is certain"
NOT_CONFIRMED = (
    "Error: The change was made, but the memory store could not confirm that it would survive a crash. "
    "View the path before trying again"
)

# our own bugs
INTERNAL = "Error: Something went wrong inside the memory tool. The log has the details under the id {id}"

# --- Showing what was sent -------------------------------------------------------------------------------------------


def cut(text: str, limit: int) -> str:
    """Return the text, or its first `limit` characters and an ellipsis where it is longer."""
    return text if len(text) <= limit else text[:limit] + "…"


def printable(text: str, limit: int = 200) -> str:
    """Return the text cut to `limit`, with whatever is not printable as an escape, so that it stays one clean line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut(text, limit))


def shown(value: object, limit: int = 200) -> str:
    """Return any value that came as JSON the way JSON writes it, cut to `limit`; what JSON cannot write, by its type."""
    # Imported here, like other modules that only a refusal needs: importing commonplace stays cheap.
    import json

    try:
        return printable(json.dumps(value, ensure_ascii=False), limit)
    except (TypeError, ValueError, RecursionError):
        return kind_of(value)


def kind_of(value: object) -> str:
    """Return the name JSON gives to the type of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list() | tuple():
            return "an array"
        case dict():
            return "an object"
        case _:
            return f"a Python {type(value).__name__}"
