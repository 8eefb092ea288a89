"""A URL -> a store. The only place that knows them all, by name, so that nothing is imported before it is asked for."""

import os
import re
from collections.abc import Callable
from importlib import import_module
from typing import cast

from commonplace.store import Store

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:(?=//)|(?:memory|file):", re.IGNORECASE)


def open_store(url: str | os.PathLike[str], *, create: bool = True) -> Store:
    """Open the store that a URL or a path names; use it in `with`, or `close()` it.

    * `memory:` is a new, empty store in this process.
    * A path (`./memories`, `~/memories`), or `file:///home/me/memories`, is a folder, which is made if it is not there. The URL takes
      options: `history=off` (which is what there is today), `max_bytes=…` (the largest memory it handles).

    With `create=False`, a store that is not there yet is not made.

    Raises ValueError for a URL that names no store or an unknown option, FileNotFoundError for a store that is not
    there and is not to be made, and OSError where it cannot be opened.
    """
    text = os.fspath(url)
    if not text:
        raise ValueError('open_store needs a URL or a path, for example "./memories"')
    found = _SCHEME.match(text)
    if found is None:
        return _import("commonplace.stores.directory:DirectoryStore")(os.path.expanduser(text), create=create)
    scheme = found[0].rstrip(":").lower()
    if scheme not in _OPENERS:
        known = ", ".join(f"{name}:" for name in _OPENERS)
        raise ValueError(f"{scheme}: is not a kind of store this version has. There are {known} and plain paths")
    return _OPENERS[scheme](text, create)


def _open_memory(url: str, create: bool) -> Store:
    if url.lower() != "memory:":
        raise ValueError(f"memory: takes neither a name nor options, so {url!r} names no store")
    return _import("commonplace.stores.dict:DictStore")()


def _open_file(url: str, create: bool) -> Store:
    from urllib.parse import (
        parse_qsl,
        unquote_to_bytes,
        urlsplit,
    )  # not cheap to import, and a plain path needs none of it

    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/") or parts.fragment:
        raise ValueError(f"A file: URL holds an absolute path, as file:///home/me/memories does; {url!r} does not")
    options: dict[str, int] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name == "max_bytes" and value.isascii() and value.isdigit():
            options[name] = int(value)
        elif (name, value) != ("history", "off"):
            raise ValueError(f"{name}={value} is no option of file: URLs. There are history=off and max_bytes=NUMBER")
    return _import("commonplace.stores.directory:DirectoryStore")(
        os.fsdecode(unquote_to_bytes(parts.path)), create=create, **options
    )


def _import(name: str) -> Callable[..., Store]:
    module, _, attribute = name.partition(":")
    return cast(Callable[..., Store], getattr(import_module(module), attribute))


_OPENERS: dict[str, Callable[[str, bool], Store]] = {"memory": _open_memory, "file": _open_file}
