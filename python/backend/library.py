"""Compile the library, and the two tools of the main wheel, with configure and make.

SPDX-License-Identifier: Apache-2.0
"""
import os
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

PYTHON = Path(__file__).resolve().parent.parent
SOURCES = PYTHON.parent

LIBRARY = "libftruntime.so.0"
IMAGES = "libftimages.so"
TOOLS = ("ft-convert", "ft-calibrate")


STRIP = "-s"


class BuildError(Exception):
    """A message for the user of pip."""


def version():
    """The version in configure.ac."""
    text = (SOURCES / "configure.ac").read_text()
    return re.search(r"AC_INIT\(\[[^]]*\], \[([^]]*)\]", text).group(1)


def require_sources():
    """Fail where python/ has been copied away from the sources, as pip before 21.3 does."""
    if not (SOURCES / "runtime" / "ft.h").exists():
        raise BuildError(f"{SOURCES}: has no runtime/ft.h: build inside the source tree of FT, "
                         "with pip 21.3 or later")


def run(command, folder, environment=None):
    """Run a command whose output pip shows on failure."""
    try:
        subprocess.run(command, cwd=folder, check=True, env=environment)
    except FileNotFoundError:
        raise BuildError(f"{command[0]}: not found, but the wheel is built with it") from None
    except subprocess.CalledProcessError as error:
        raise BuildError(f"{command[0]}: exited with {error.returncode} in {folder}") from None


@contextmanager
def build_folder(settings):
    """The folder of -C build-dir=DIR, which is kept; else a temporary one."""
    if "build-dir" in settings:
        folder = Path(settings["build-dir"]).resolve()
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="ftruntime-") as folder:
        yield Path(folder)


# What the library and the tools are made of.
FOLDERS = ("build-aux", "calibrate", "convert", "kernels", "m4", "runtime")
FILES = ("Makefile.am", "configure.ac")
GENERATED = ("Makefile.in", "aclocal.m4", "config.h.in", "configure")  # in a release archive

# What a build inside the source tree leaves there.
PRODUCTS = shutil.ignore_patterns("*.a", "*.inc", "*.l[ao]", "*.o", ".deps", ".dirstamp", ".libs",
                                  "libftruntime.map", "ft-runtime.pc", "ftConfig*.cmake",
                                  "__pycache__")


def included_makefiles():
    """The parts of Makefile.am, which automake reads even where nothing of them is built."""
    return re.findall(r"^include (\S+)", (SOURCES / "Makefile.am").read_text(), re.MULTILINE)


def copy_sources(folder):
    """Copy the sources, so that building changes nothing in their tree, configured or not."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in FOLDERS:
        shutil.copytree(SOURCES / name, folder / name, ignore=PRODUCTS, dirs_exist_ok=True)
    generated = [name for name in GENERATED if (SOURCES / name).exists()]
    for name in (*FILES, *included_makefiles(), *generated):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(SOURCES / name, folder / name)


def configure(folder, *options):
    """Make folder/build from folder/source.  Relative paths make the same bytes anywhere."""
    source, build = folder / "source", folder / "build"
    copy_sources(source)
    if not (source / "configure").exists():
        run(["autoreconf", "-fi"], source)
    if not (build / "Makefile").exists():
        build.mkdir(exist_ok=True)
        run(["../source/configure", "-q", *options, "CFLAGS=" + os.environ.get("CFLAGS", "-O2")],
            build)
    return build


def make(build, settings, *arguments):
    jobs = settings.get("jobs", str(len(os.sched_getaffinity(0))))
    run(["make", "-s", f"-j{jobs}", *arguments], build)


def compile_into(target, settings):
    """Put the library into target/lib and the tools into target/bin."""
    require_sources()
    with build_folder(settings) as folder:
        build = configure(folder, "--with-cuda=no")
        # The tools find the library beside them, wherever the wheel is installed.
        make(build, settings, f"LDFLAGS={STRIP}", "FT_RPATH=-Wl,-rpath,'$$ORIGIN/../lib'",
             "libftruntime.la", f"python/{IMAGES}", *(f"bin/{tool}" for tool in TOOLS))
        (target / "lib").mkdir()
        (target / "bin").mkdir()
        shutil.copy(build / ".libs" / LIBRARY, target / "lib" / LIBRARY)
        shutil.copy(build / "python" / IMAGES, target / "lib" / IMAGES)
        for tool in TOOLS:
            shutil.copy(build / "bin" / ".libs" / tool, target / "bin" / tool)


def compile_cuda_into(target, settings, capabilities, run_path):
    """Put the library with CUDA into target/lib; it finds those of CUDA by its run path."""
    require_sources()
    escaped = run_path.replace("$", "$$")
    with build_folder(settings) as folder:
        build = configure(folder, "--with-cuda=yes", f"--with-cuda-arch={capabilities}",
                          "NVCCFLAGS=-O2")
        make(build, settings, f"LDFLAGS={STRIP} -Wl,-rpath,'{escaped}'", "libftruntime.la")
        (target / "lib").mkdir(parents=True)
        shutil.copy(build / ".libs" / LIBRARY, target / "lib" / LIBRARY)
