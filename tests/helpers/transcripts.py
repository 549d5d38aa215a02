"""What a page shows of a command's output, compared with what the command printed."""

import re

BLOCK = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)  # kind, file, text


def pattern(line):
    """A line of a transcript as a regular expression: `...` is any text, blanks are as many as there are."""
    words = " ".join(line.split())
    return re.compile(".*".join(map(re.escape, words.split("..."))).replace(r"\ .*", ".*"))


def assert_printed(shown, printed):
    """Each line that is shown comes in the printed ones, in order; a line of dots stands for any number."""
    left = [" ".join(line.split()) for line in printed.splitlines()]
    for line in shown:
        if line != "...":
            place = next((i for i, one in enumerate(left) if pattern(line).fullmatch(one)), None)
            assert place is not None, f"not printed: {line}\n" + "\n".join(left)
            left = left[place + 1 :]
