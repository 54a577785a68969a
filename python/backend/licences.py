"""The licences of the libraries that auditwheel adds, from Debian's packages.

SPDX-License-Identifier: Apache-2.0
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path


def packages_with(name):
    """Debian packages that hold a file of this name; none on other systems."""
    try:
        done = subprocess.run(["dpkg-query", "-S", f"*/{name}"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, universal_newlines=True)
    except FileNotFoundError:
        return []
    return [re.split("[:,]", line)[0] for line in done.stdout.splitlines()]


def licence_of(name):
    """(package, copyright file) of a library, or None."""
    for package in packages_with(name):
        path = Path("/usr/share/doc", package, "copyright")
        if path.exists():
            return package, path
    return None


def add_licences(wheel):
    """Put the licence of each library in an unpacked wheel into licenses/; name what is missing."""
    folder = next(wheel.glob("*.dist-info")) / "licenses"
    folder.mkdir()
    for library in sorted(wheel.glob("*.libs/*")):
        # auditwheel has put a hash into the name.
        found = licence_of(re.sub(r"-[0-9a-f]{8}(?=\.so)", "", library.name))
        if found is None:
            print(f"{library.name}: add its licence before you publish the wheel", file=sys.stderr)
        else:
            shutil.copyfile(found[1], folder / found[0])
