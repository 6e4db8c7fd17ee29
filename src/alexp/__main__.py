"""`alexp` and `python -m alexp`: the command line."""

import sys

from alexp.common.extras import require


def main() -> None:
    """Run the command line, or say what it needs."""
    try:
        require("typer", "rich", subject="the command line")
    except ModuleNotFoundError as error:
        sys.exit(f"error: {error}")
    from alexp.cli import main as run

    run()


if __name__ == "__main__":
    main()
