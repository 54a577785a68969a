"""ftruntime-cu13: libftruntime with CUDA, which ftruntime uses where it finds this package.

SPDX-License-Identifier: Apache-2.0
"""
import os

from ._version import VERSION

__all__ = ["LIBRARY", "VERSION"]

LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "libftruntime.so.0")
