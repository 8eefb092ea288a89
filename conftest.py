"""Documents are tests too, and what could not run is named at the end and fails the run where CI says so."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

from commonplace.testing.scripted_claude import ScriptedClaude

# What Claude does in the program of the README.
TEA = [
    {"command": "view", "path": "/memories"},
    {"command": "create", "path": "/memories/preferences.md", "file_text": "Tea: without sugar\n"},
]
# Commands that a document shows and a test must not run: they install, or run the tests themselves.
NOT_RUN = ("pip install", "make ", "git clone")


def run_console(example: Example) -> None:
    """Run each `$ command` of a console block where the document's programs run, and compare what it prints."""
    for block in ("\n" + example.parsed).split("\n$ ")[1:]:
        command, _, expected = block.partition("\n")
        if not command.startswith(NOT_RUN):
            done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)  # noqa: S602
            assert done.stdout.strip() == expected.strip()


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), CodeBlockParser(language="console", evaluator=run_console)],
    pattern="*.md",
    excludes=["reference.md"],  # made from docstrings and help, which are tested where they are
    fixtures=["document"],
).pytest()


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder, the command line, and somebody who answers the SDK, for the programs of one document."""
    with (
        pytest.MonkeyPatch.context() as patch,
        ScriptedClaude({"I take my tea without sugar.": [*TEA, "Noted."]}) as claude,
    ):
        patch.chdir(tmp_path_factory.mktemp("document"))
        patch.setenv("ANTHROPIC_BASE_URL", claude.url)
        patch.setenv("ANTHROPIC_API_KEY", "none is needed")
        patch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        yield


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and reporter.stats.get("skipped") and os.environ.get("CI") == "true":
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if skipped := terminalreporter.stats.get("skipped"):
        terminalreporter.section("not run")
        for report in skipped:
            terminalreporter.line(f"{report.nodeid}: {report.longrepr[2]}")
        if os.environ.get("CI") == "true":
            terminalreporter.line("With CI=true, what was not run counts as failed.", red=True)
