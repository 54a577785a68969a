"""Make a package of a build folder, for PYTHONPATH: a test or a developer needs no wheel.

    python3 python/backend/stage.py BUILD FOLDER

FOLDER/ftruntime has links to the modules here and to the library and the tools in BUILD, and the
module of cffi.

SPDX-License-Identifier: Apache-2.0
"""
import sys
from pathlib import Path

import cdef
import library


def link(target, folder, name=None):
    """Make a link in a folder that need not exist."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / (name or target.name)).symlink_to(target)


def stage(build, folder):
    package = folder / "ftruntime"
    for path in (library.PYTHON / "ftruntime").iterdir():
        if path.name != "__pycache__":
            link(path, package)
    link((build / ".libs" / library.LIBRARY).resolve(), package / "lib", library.LIBRARY)
    images = build / "python" / library.IMAGES
    if images.exists():  # make python/libftimages.so
        link(images, package / "lib")
    for tool in library.TOOLS:
        link(build / tool, package / "bin")
    cdef.write_module(library.SOURCES, package / "_ft.py")


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: python3 stage.py BUILD FOLDER")
    build, folder = (Path(argument).resolve() for argument in sys.argv[1:])
    if not (build / ".libs" / library.LIBRARY).exists():
        sys.exit(f"{build}: found no .libs/{library.LIBRARY}, expected a build of FT")
    stage(build, folder)


main()
