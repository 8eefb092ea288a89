"""For tests of stores and doors, ours and yours. Needs `commonplace[testing]`.

`StoreSuite` asks a store for every promise of `commonplace.store`. `ANSWERS` is the transcript of commands and
documented answers that every door has to give word for word.
"""

from commonplace.testing.answers import ANSWERS, Step
from commonplace.testing.stores import StoreSuite

__all__ = ["ANSWERS", "Step", "StoreSuite"]
