"""Build wheel and sdist, install the wheel into an empty environment, use it: `python tools/try_package.py`.

Everything happens in a temporary folder outside of the repository. `--lowest` installs the oldest packages
that pyproject.toml allows, `--python` names another interpreter. Printed at the end: the size of each package
of the base installation and what it is for; the sum has a budget, above which the command fails.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

REPOSITORY = Path(__file__).parent.parent
BUDGET = 720  # MB of the base installation, on Linux
NEEDED = ("build", "hatchling", "uv")  # what builds and installs
PURPOSES = {
    "altair": "charts of the report",
    "click": "command line",
    "jinja2": "pages of the report",
    "llvmlite": "compiler of numba",
    "narwhals": "reads pandas, polars and pyarrow tables alike",
    "numba": "compiles the loops over records",
    "numpy": "arrays",
    "platformdirs": "where the private record lies",
    "polars": "reads and writes files",
    "polars-runtime-32": "polars' compiled part",
    "pygments": "needed by rich",
    "randomgen": "the cryptographic generator of releases",
    "rich": "tables in the terminal",
    "scipy": "special functions, distributions, sparse equations",
    "sdckit": "the package itself",
    "vl-convert-python": "draws charts as SVG without a browser or a network",
}
INSIDE = (  # one file of each kind that the wheel must hold
    "sdckit/py.typed",
    "sdckit/__init__.pyi",
    "sdckit/data/sample.csv",
    "sdckit/request/outputs.json",
    "sdckit/app/templates/base.html",
    "sdckit/app/static/app.js",
    "sdckit/report/page.html",
    "sdckit/paper/sdcmicro.csv",
    "sdckit/docs/tutorial.md",
    "sdckit/docs/reference/commands.md",
    "sdckit/docs/explanation/risk.md",
)
IN_SDIST = {
    "CHANGELOG.md",
    "CITATION.cff",
    "LICENSE",
    "PKG-INFO",
    "README.md",
    "docs",
    "pyproject.toml",
    "src",
}
IMPORT = "import sdckit as s; d = s.load_sample(); print(s.__version__, s.brmae(d, d), s.__file__)"
SIZES = """
import importlib.metadata as m, json
sizes = {}
for one in m.distributions():
    files = [f.locate() for f in one.files or []]
    sizes[one.metadata["Name"]] = one.version, sum(f.stat().st_size for f in files if f.is_file())
print(json.dumps(sizes))
"""


def run(*words: object, folder: Path) -> str:
    """Run a command in a folder without the repository on its path; return what it printed."""
    kept = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(  # noqa: S603 - our own words
        [str(word) for word in words], cwd=folder, env=kept, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"failed: {' '.join(str(word) for word in words)}\n{done.stdout}{done.stderr}")
    return done.stdout


def program(environment: Path, name: str) -> Path:
    """Return the path of a program of a virtual environment."""
    return environment / ("Scripts" if os.name == "nt" else "bin") / name


def build(folder: Path, tools: Path) -> Path:
    """Build the sdist, a wheel from it and a wheel from the repository; check them and return the last."""
    for kind, source in (("sdist", REPOSITORY), ("wheel", REPOSITORY)):
        run(tools, "-m", "build", "-n", f"--{kind}", "-o", folder / "dist", source, folder=folder)
    sdist, wheel = next((folder / "dist").glob("*.tar.gz")), next((folder / "dist").glob("*.whl"))
    check_sdist(sdist)
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    unpacked = next((folder / "unpacked").iterdir())
    run(tools, "-m", "build", "-n", "--wheel", "-o", folder / "again", unpacked, folder=folder)
    if digests(wheel) != digests(next((folder / "again").glob("*.whl"))):
        raise SystemExit("the wheel from the sdist differs from the wheel from the repository")
    return wheel


def check_sdist(sdist: Path) -> None:
    """Fail if the sdist holds anything but sources, documentation and what builds the wheel."""
    with tarfile.open(sdist) as archive:
        found = {name.split("/")[1] for name in archive.getnames()} - {".gitignore"}
    if found != IN_SDIST:
        raise SystemExit(f"the sdist holds {sorted(found ^ IN_SDIST)} too much or too little")


def digests(wheel: Path) -> dict[str, str]:
    """Return the digest of each file of a wheel; fail if a kind of file is missing."""
    with zipfile.ZipFile(wheel) as archive:
        found = {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}
    missing = [name for name in INSIDE if name not in found]
    strange = [name for name in found if not name.startswith(("sdckit/", "sdckit-"))]
    if missing or strange:
        raise SystemExit(f"the wheel lacks {missing} or holds {strange}")
    return found


def check_lowest(environment: Path, folder: Path) -> None:
    """Fail if a package of the base installation is missing or not the oldest one that is declared."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = {name: version for name, (version, _) in installed(environment, folder).items()}
    if faults := faults_of_lowest(project["dependencies"], versions):
        raise SystemExit("; ".join(faults))


def installed(environment: Path, folder: Path) -> dict[str, tuple[str, int]]:
    """Return version and size of each package of an environment, by the one spelling of its name."""
    found = json.loads(run(program(environment, "python"), "-c", SIZES, folder=folder))
    return {plain_name(name): (version, size) for name, (version, size) in found.items()}


def plain_name(name: str) -> str:
    """Return the name of a package as indexes compare it: in lower case, with single hyphens."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def faults_of_lowest(declared: Iterable[str], versions: Mapping[str, str]) -> list[str]:
    """Return a text for each declared package that is missing or newer than its bound."""
    faults = []
    for line in declared:
        requirement, _, marker = line.partition(";")
        name, _, bound = requirement.partition(">=")
        version = versions.get(plain_name(name))
        if version is None and not marker:  # those with a marker may be for another system
            faults.append(f"{name} is declared and was not installed")
        elif version is not None and not f"{version}.".startswith(f"{bound.strip()}."):
            faults.append(f"{name} {version} was installed in place of {bound.strip()}")
    return faults


def use(environment: Path, folder: Path) -> None:
    """Import the package and run its demonstration in a folder of its own."""
    place = folder / "outside"
    place.mkdir()
    python = program(environment, "python")
    print(run(python, "-c", IMPORT, folder=place).strip())
    run(program(environment, "sdckit"), "demo", folder=place)
    report = (place / "sdckit-demo" / "report.html").read_text(encoding="utf-8")
    if "<svg" not in report or not (place / "sdckit-demo" / "masked.csv").stat().st_size:
        raise SystemExit("the demonstration wrote no map or no masked file")
    print("sdckit demo: masked file and report with charts written")


def print_sizes(environment: Path, folder: Path) -> None:
    """Print the size of each installed package and what it is for; fail if the sum is above the budget."""
    found = installed(environment, folder)
    sizes = {name: (version, size / 1e6) for name, (version, size) in found.items()}
    for name, (version, size) in sorted(sizes.items(), key=lambda item: -item[1][1]):
        print(f"{size:8.1f} MB  {name} {version}: {PURPOSES.get(name, 'needed by others')}")
    total = sum(size for _, size in sizes.values())
    print(f"{total:8.1f} MB in all; the budget is {BUDGET} MB")
    if total > BUDGET:
        raise SystemExit("the base installation is above its budget")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lowest", action="store_true", help="the oldest dependencies that are declared")
    parser.add_argument("--python", default=sys.executable, help="interpreter of the environment")
    parser.add_argument("--extras", default="", help="extras to install as well, such as stats,formats")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(sys.executable, "-m", "venv", folder / "tools", folder=folder)
        tools = program(folder / "tools", "python")
        run(tools, "-m", "pip", "install", "-q", *NEEDED, folder=folder)
        wheel = build(folder, tools)
        print(f"built {wheel.name}, {wheel.stat().st_size / 1e6:.1f} MB; the sdist builds the same wheel")
        environment, uv = folder / "environment", program(folder / "tools", "uv")
        run(uv, "venv", "-q", "-p", asked.python, environment, folder=folder)
        wanted = f"{wheel}[{asked.extras}]" if asked.extras else wheel
        # uv takes the requirements of pyproject.toml, not those of a wheel, for direct ones.
        order = ("--resolution", "lowest-direct", "-r", REPOSITORY / "pyproject.toml") if asked.lowest else ()
        run(uv, "pip", "install", "-q", "-p", environment, *order, wanted, folder=folder)
        if asked.lowest:
            check_lowest(environment, folder)
        use(environment, folder)
        if not asked.extras:
            print_sizes(environment, folder)


if __name__ == "__main__":
    main()
