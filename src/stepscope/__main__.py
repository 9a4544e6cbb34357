"""`python -m stepscope`: the command line."""

from stepscope.capture.command import main

if __name__ == "__main__":
    main()
