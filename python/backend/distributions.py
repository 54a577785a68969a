"""The two distributions: ftruntime, and the library with CUDA that it uses where that is installed.

    pip wheel ./python                  # ftruntime
    pip wheel ./python -C cuda=90a      # ftruntime-cu13, for these compute capabilities, or "all"

SPDX-License-Identifier: Apache-2.0
"""
import os
import re
import shutil
import subprocess
from collections import namedtuple

from library import BuildError, version

CUDA = 13  # the major version of the toolkit
CUDA_PACKAGE = f"ftruntime_cu{CUDA}"
CUDA_NAME = f"ftruntime-cu{CUDA}"
ALL_CAPABILITIES = "75,80,86,89,90a,100,120"

# Where the wheels of NVIDIA put their libraries, seen from the library of this one.
RUN_PATH = f"$ORIGIN/../../nvidia/cu{CUDA}/lib"

# What those wheels have, which auditwheel must leave out.
NVIDIA_LIBRARIES = (f"libcublas.so.{CUDA}", f"libcublasLt.so.{CUDA}", f"libcudart.so.{CUDA}",
                    "libcurand.so.10")


class Distribution(namedtuple("Distribution", "name package summary metadata external")):
    """Names, the lines of METADATA that differ, and the libraries that other wheels have."""

    __slots__ = ()


def main_distribution():
    return Distribution("ftruntime", "ftruntime",
                        "Run quantized transformers on CPUs with libftruntime",
                        ["Requires-Dist: cffi>=1.15",
                         "Requires-Dist: numpy>=1.22",
                         "Provides-Extra: cuda",
                         f'Requires-Dist: {CUDA_NAME}=={version()}; extra == "cuda"',
                         "Provides-Extra: serve",
                         'Requires-Dist: starlette>=0.40; extra == "serve"',
                         'Requires-Dist: uvicorn>=0.30; extra == "serve"'], ())


def cuda_distribution():
    toolkit = toolkit_version()
    return Distribution(CUDA_NAME, CUDA_PACKAGE,
                        f"libftruntime with CUDA {CUDA}, for ftruntime",
                        [f"Requires-Dist: nvidia-cublas>={toolkit},<{CUDA + 1}",
                         f"Requires-Dist: nvidia-cuda-runtime>={toolkit},<{CUDA + 1}",
                         "Requires-Dist: nvidia-curand>=10.4,<11"], NVIDIA_LIBRARIES)


def distribution(settings):
    """The one that the settings of pip ask for."""
    if "cuda" not in settings:
        return main_distribution()
    capabilities(settings)
    return cuda_distribution()


def capabilities(settings):
    """Compute capabilities as configure takes them: "80,90a"."""
    asked = settings["cuda"]
    if asked == "all":
        return ALL_CAPABILITIES
    if not re.fullmatch(r"\d+[af]?(,\d+[af]?)*", asked):
        raise BuildError(f'cuda: found "{asked}", expected "all" or a list such as 80,90a')
    return asked


def toolkit_version():
    """"13.0", of the nvcc that configure finds."""
    path = os.pathsep.join((os.environ.get("PATH", ""), "/usr/local/cuda/bin"))
    nvcc = shutil.which("nvcc", path=path)
    if nvcc is None:
        raise BuildError("nvcc: not found, but the wheel with CUDA is built with it")
    text = subprocess.run([nvcc, "--version"], stdout=subprocess.PIPE, check=True,
                          universal_newlines=True).stdout
    found = re.search(r"release (\d+)\.(\d+)", text)
    if found is None or int(found.group(1)) != CUDA:
        raise BuildError(f"{nvcc}: found {found and found.group()}, expected CUDA {CUDA}, whose "
                         "libraries the wheels of NVIDIA have")
    return f"{found.group(1)}.{found.group(2)}"
