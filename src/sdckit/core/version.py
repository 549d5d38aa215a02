"""Version numbers of the package, and of the attacks that measure its risks."""

VERSION = "0.1.0"
INTRUDER_VERSION = 3  # of the attacks: risks measured by two versions cannot be compared
