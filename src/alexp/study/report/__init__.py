"""The HTML report of a study."""

from alexp.study.report.report import write_report

__all__ = ["write_report"]
