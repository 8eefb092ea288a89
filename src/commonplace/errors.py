"""What can go wrong, named after what the catcher does next.

Exception
├── Refused     tell the model: the text is the answer
└── Conflict    somebody was faster or something is in the way: read again

Anything else that comes out of a store is a bug of ours. Every door then says so in one neutral sentence with an id
(`internal`), and the log has the traceback under that id. No host path, driver message or traceback reaches Claude.
"""

import errno
import os
from typing import TYPE_CHECKING

from commonplace import messages

if TYPE_CHECKING:
    from logging import Logger


class Refused(Exception):
    """`str(refused)` is the sentence that tells Claude why it was not done.

    Nothing was changed, but for the rare sentences that say otherwise, of storage that failed in the middle.
    """


class Conflict(Exception):
    """The store does not hold what the caller expected, so nothing was done.

    `path` is the key that stands in the way: the memory itself, one above it or one below it.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


_SENTENCES = {
    errno.EACCES: messages.PERMISSION_DENIED,
    errno.EPERM: messages.PERMISSION_DENIED,
    errno.EROFS: messages.READ_ONLY,
    errno.ENOSPC: messages.STORE_FULL,
    errno.EDQUOT: messages.STORE_FULL,
    errno.EFBIG: messages.STORE_FULL,
    errno.EXDEV: messages.MOUNTED,
    errno.EBUSY: messages.MOUNTED,
    errno.ENAMETOOLONG: messages.NAME_TOO_LONG,
    errno.ESTALE: messages.STORE_GONE,
}


def refused_by_system(error: OSError) -> Refused:
    """Return the refusal for what the operating system said no to; the log gets the system's own words.

    Raise it `from error`, so that the cause stays attached.
    """
    log().warning("the memory store was refused by the system: %s", error)
    return Refused(_SENTENCES.get(error.errno or 0, messages.STORE_FAILED))


def internal(error: Exception) -> str:
    """Log a bug of ours under a fresh id and return the neutral sentence that carries the id."""
    identifier = os.urandom(4).hex()
    log().error("internal error %s", identifier, exc_info=error)
    return messages.INTERNAL.format(id=identifier)


def log() -> "Logger":
    """Return the logger of this package. `logging` is loaded when there is something to say, which is seldom."""
    from logging import getLogger

    return getLogger("commonplace")
