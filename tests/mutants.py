"""Directory stores with one defect each, which the proving ground has to find."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from commonplace import Conflict, Memory
from commonplace.store import Expect, sha256
from commonplace.stores.directory import DirectoryStore


class NoLock(DirectoryStore):
    """Writers do not take turns."""

    def _writing(self) -> Any:
        @contextmanager
        def nobody_waits() -> Iterator[int]:
            yield self._staging_folder()

        return nobody_waits()


class CachedRead(DirectoryStore):
    """What was read once is not read again."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self._seen: dict[str, Memory | None] = {}

    def read(self, path: str) -> Memory | None:
        if path not in self._seen:
            self._seen[path] = super().read(path)
        return self._seen[path]

    def write(self, path: str, content: str, *, expect: Expect = None) -> Memory:
        memory = self._seen[path] = super().write(path, content, expect=expect)
        return memory


class InPlace(DirectoryStore):
    """A text is written over the old one, and not beside it and renamed."""

    def write(self, path: str, content: str, *, expect: Expect = None) -> Memory:
        with self._writing():
            memory = self.read(path)
            if memory is not None:
                if expect not in (None, memory.revision):
                    raise Conflict(path)
                with (self.root / path).open("w", buffering=1000) as stream:
                    stream.write(content)
                    stream.flush()
                    os.fsync(stream.fileno())
                return Memory(path, len(content), memory.updated_at, content, sha256(content.encode()))
        return super().write(path, content, expect=expect)


class VisibleTemporaryFile(DirectoryStore):
    """A new text is first a file in the open."""

    def write(self, path: str, content: str, *, expect: Expect = None) -> Memory:
        temporary = self.root / f"{path.replace('/', '-')}.{os.urandom(4).hex()}.tmp"
        temporary.write_text(content)
        try:
            return super().write(path, content, expect=expect)
        finally:
            temporary.unlink()


class EarlyAcknowledgement(DirectoryStore):
    """A write is done soon after it was said to be."""

    def write(self, path: str, content: str, *, expect: Expect = None) -> Memory:
        if expect is not None:
            return super().write(path, content, expect=expect)
        memory = Memory(path, len(content), super().write(".commonplace/x", content).updated_at, content, "")
        threading.Timer(0.005, super().write, (path, content)).start()
        return memory


class PrefixWithoutSeparator(DirectoryStore):
    """What begins like a directory's name is taken to be in it."""

    def delete(self, path: str, *, expect: str | None = None) -> int:
        alike = [] if (self.root / path).is_file() else [name for name in self._names() if name.startswith(path)]
        return sum(super(PrefixWithoutSeparator, self).delete(name) for name in alike) or super().delete(
            path, expect=expect
        )

    def _names(self) -> list[str]:
        return [name for name in os.listdir(self.root) if name != ".commonplace" and Path(self.root, name).is_dir()]
