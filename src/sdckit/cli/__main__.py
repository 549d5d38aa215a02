"""Run the command line as `python -m sdckit.cli`."""

from sdckit.cli import main

if __name__ == "__main__":
    main()
