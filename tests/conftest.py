"""What all tests share: a part that could not run is named at the end, and fails the run where CI says so."""

import os

import pytest


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
