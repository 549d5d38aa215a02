"""Run the command line as `python -m sdckit`."""

from sdckit.cli import main

if __name__ == "__main__":
    main()
