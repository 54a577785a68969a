"""The package as a whole: its functions, its imports, its errors.

SPDX-License-Identifier: Apache-2.0
"""
import importlib.util
import os
import pickle
import re
import subprocess
import sys
import tempfile
import unittest

import ftruntime as ft
import support
from ftruntime._library import LIBRARY, OWN_LIBRARY, ffi, lib


class Package(unittest.TestCase):
    def test_every_exported_function_is_declared(self):
        with open(os.path.join(support.SOURCES, "runtime/libftruntime.map.in")) as file:
            public = file.read().split("FT_PRIVATE")[0]
        names = re.findall(r"^    (ft_\w+);$", public, flags=re.MULTILINE)
        self.assertGreater(len(names), 40)
        for name in names:
            self.assertTrue(callable(getattr(lib, name, None)), name)

    def test_structures_have_the_sizes_of_the_compiler(self):
        source = '#include "runtime/ft.h"\n#include <stdio.h>\nint main(void) {\n'
        names = ["ft_error", "ft_tensor", "ft_device_info", "ft_model_options", "ft_model_info",
                 "ft_session_options", "ft_request", "ft_token", "ft_generate_options",
                 "ft_beam_search_options", "ft_hypothesis", "ft_encode_options", "ft_encoding",
                 "ft_engine_options", "ft_engine_request", "ft_engine_tensor", "ft_engine_stats"]
        source += "".join(f'printf("%zu\\n", sizeof({name}));\n' for name in names) + "}\n"
        program = os.path.join(support.FOLDER, "sizes")
        subprocess.run(["cc", "-I", support.SOURCES, "-xc", "-", "-o", program],
                       input=source.encode(), check=True)
        sizes = subprocess.run([program], stdout=subprocess.PIPE, check=True).stdout.split()
        self.assertEqual([ffi.sizeof(name) for name in names], [int(size) for size in sizes])

    def test_import_loads_no_numpy(self):
        program = ("import sys, ftruntime; "
                   "sys.exit(any(m in sys.modules for m in ('numpy', 'cffi', 'subprocess')))")
        self.assertEqual(subprocess.run([sys.executable, "-c", program]).returncode, 0)

    def test_module_prints_version_and_devices(self):
        done = subprocess.run([sys.executable, "-m", "ftruntime"], stdout=subprocess.PIPE,
                              check=True)
        lines = done.stdout.decode().splitlines()
        self.assertEqual(lines[0], f"ftruntime {ft.__version__}")
        self.assertTrue(lines[1].startswith("cpu "))

    def test_a_missing_file_is_an_error_with_its_name_and_code(self):
        with self.assertRaises(ft.FtError) as caught:
            ft.Model.open("/missing.ft")
        self.assertIn("/missing.ft", str(caught.exception))
        self.assertEqual((caught.exception.code, caught.exception.status), (2, "FT_EIO"))

    def test_errors_survive_pickling(self):
        copy = pickle.loads(pickle.dumps(ft.FtError("text", 2, "FT_EIO")))
        self.assertEqual((str(copy), copy.code, copy.status), ("text", 2, "FT_EIO"))

    def test_cuda_is_refused_with_the_reason_of_the_library(self):
        cuda = [device for device in ft.devices() if device.name.startswith("cuda")]
        self.assertFalse(cuda[0].usable)
        with self.assertRaises(ft.FtError) as caught:
            ft.Model.open(support.generated("classifier"), device="cuda")
        self.assertEqual(caught.exception.status, "FT_EDEVICE")
        self.assertIn("CUDA", str(caught.exception))
        hint = "ftruntime-cu13" in str(caught.exception)
        self.assertEqual(hint, LIBRARY == OWN_LIBRARY)

    def library_beside(self, version):
        """Whether a process and the tools that it starts use the library of a ftruntime-cu13 of a
        version, and its warnings.
        """
        with tempfile.TemporaryDirectory() as folder:
            package = os.path.join(folder, "ftruntime_cu13")
            os.mkdir(package)
            library = os.path.join(os.path.dirname(LIBRARY), ".", os.path.basename(LIBRARY))
            with open(os.path.join(package, "__init__.py"), "w") as file:
                file.write(f"VERSION = {version!r}\nLIBRARY = {library!r}\n")
            program = ("import sys; sys.path.append(sys.argv[1])\n"
                       "from ftruntime._library import LIBRARY; print(LIBRARY)\n"
                       "from ftruntime import tools; print(tools._environment().get('LD_PRELOAD'))")
            done = subprocess.run([sys.executable, "-c", program, folder], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, check=True, universal_newlines=True)
            return [line == library for line in done.stdout.splitlines()], done.stderr

    @unittest.skipIf(importlib.util.find_spec("ftruntime_cu13"), "ftruntime-cu13 is installed")
    def test_the_library_with_cuda_is_used_in_the_same_version(self):
        self.assertEqual(self.library_beside(ft.__version__), ([True, True], ""))
        used, warning = self.library_beside("0.0.1")
        self.assertEqual(used, [False, False])
        self.assertIn(f"found version 0.0.1, expected {ft.__version__}", warning)

    def test_types_are_shipped(self):
        self.assertTrue(os.path.exists(os.path.join(os.path.dirname(ft.__file__), "py.typed")))


if __name__ == "__main__":
    unittest.main()
