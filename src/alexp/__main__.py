"""`python -m alexp`: the command line."""

from alexp.cli import main

if __name__ == "__main__":
    main()
