"""The suite that every store passes, ours and yours."""


class StoreSuite:
    """Placeholder for the next commit."""
