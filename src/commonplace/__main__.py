"""`commonplace` and `python -m commonplace`: the command line, or a word on how to get it."""

import os
import sys

from commonplace.errors import internal


def main() -> None:
    try:
        from commonplace.cli import app
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        sys.exit("commonplace: the command line is an extra. Install it with: pip install 'commonplace[cli]'")
    try:
        app(prog_name="commonplace")
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        # Whatever is left to print cannot be, and Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # If nobody reads any more, nobody wants to be told.
        sys.exit(1 if isinstance(error, BrokenPipeError) else f"commonplace: {error}")
    except Exception as error:
        sys.exit(internal(error))


if __name__ == "__main__":
    main()
