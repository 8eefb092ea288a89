"""The command line. Needs `commonplace[cli]`."""

import sys
from typing import Annotated

import typer

from commonplace.jsonlines import serve
from commonplace.open import open_store
from commonplace.store import Store
from commonplace.tool import MemoryTool

app = typer.Typer(
    help="Memory for Claude that you keep.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)

StoreOption = Annotated[
    str,
    typer.Option(
        "--store",
        envvar="COMMONPLACE_STORE",
        metavar="PATH|URL",
        help="Where the memories are: a folder, or a URL such as file:///home/me/memories.",
    ),
]


@app.callback()
def commonplace() -> None:
    """Memory for Claude that you keep."""


@app.command("exec")
def exec_(store: StoreOption = "./memories") -> None:
    """Answer memory commands from standard input, one JSON object per line, until it ends.

    A line is a tool_use block as the API sends it, or its bare `input`. Each is answered by one line on standard
    output: the tool_result block to send back. One process serves for as long as you like, from any language.

    Example: `echo '{"command": "view", "path": "/memories"}' | commonplace exec --store ./memories`

    Exit codes: 0 the input ended, 1 the store cannot be opened or nobody reads the answers, 2 wrong usage,
    130 interrupted.
    """
    with _open(store) as opened:
        serve(MemoryTool(opened), sys.stdin.buffer, sys.stdout.buffer)


def _open(store: str) -> Store:
    try:
        return open_store(store)
    except (ValueError, OSError, NotImplementedError) as error:
        typer.echo(f"commonplace: cannot open the store {store!r}: {error}", err=True)
        raise typer.Exit(1) from None
