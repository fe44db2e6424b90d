"""`python -m rowqueue.cli` is the command `runner`."""

from . import main

if __name__ == "__main__":
    main()
