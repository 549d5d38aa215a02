"""How a process is started that Ctrl-C does not reach, on every system."""

import subprocess

NEW_GROUP: int = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)  # Windows has it in place of sessions
