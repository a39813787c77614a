"""`python -m worker` is `trickbook-worker`."""

from worker.cli import main

if __name__ == "__main__":
    main()
