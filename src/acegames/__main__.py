"""`python -m acegames` is the command-line program."""

from acegames.cli import main

if __name__ == "__main__":
    main()
