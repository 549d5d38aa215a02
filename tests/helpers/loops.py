"""Run coroutines where a browser of other tests may have left its own loop running in this thread."""

import asyncio
from concurrent.futures import ThreadPoolExecutor


def run(coroutine):
    """Run a coroutine to its end in a thread of its own; return its result or raise its error."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()
