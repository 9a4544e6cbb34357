"""`python -m stepscope`: the command line."""

from stepscope.cli import main

if __name__ == "__main__":
    main()
