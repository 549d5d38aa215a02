"""Which records of two files are the same, by comparing every record with every other."""


def shared_records(ours, theirs):
    """Pairs (our row, their row) of equal records; each row of theirs goes with one of ours at most."""
    free, found = list(range(len(theirs))), []
    for row, record in enumerate(ours):
        for other in free:
            if theirs[other] == record:
                found.append((row, other))
                free.remove(other)
                break
    return found
