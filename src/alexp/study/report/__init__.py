"""The HTML report of a study."""

from alexp.study.report.page import render, write_report

__all__ = ["render", "write_report"]
