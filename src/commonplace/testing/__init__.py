"""For tests of stores and doors, ours and yours. Needs `commonplace[testing]`.

`StoreSuite` asks a store for every promise of `commonplace.store`. `ANSWERS` is the transcript of commands and
documented answers that every door has to give word for word. `ScriptedClaude` is a Messages API on loopback whose model
follows a script, for programs that use the SDK. `python -m commonplace.testing.soak` proves a store for as long as one
likes, and `commonplace.testing.linearizability` is the checker it uses.
"""

import pytest

# So that a suite that fails shows the values, as a test of one's own does.
pytest.register_assert_rewrite("commonplace.testing.stores")

from commonplace.testing.answers import ANSWERS, Step
from commonplace.testing.scripted_claude import Failure, ScriptedClaude, Turn
from commonplace.testing.stores import StoreSuite

__all__ = ["ANSWERS", "Failure", "ScriptedClaude", "Step", "StoreSuite", "Turn"]
