"""The library: loading it, its errors, its tensors.

SPDX-License-Identifier: Apache-2.0
"""
import os

from ._ft import VERSION, ffi

FOLDER = os.path.dirname(os.path.abspath(__file__))
OWN_LIBRARY = os.path.join(FOLDER, "lib", "libftruntime.so.0")


def find_library():
    """The library of ftruntime-cu13 where it is installed in the same version, else that here."""
    try:
        import ftruntime_cu13 as cuda
    except ImportError:
        return OWN_LIBRARY
    if cuda.VERSION == VERSION:
        return cuda.LIBRARY
    import warnings

    warnings.warn(f"ftruntime-cu13 is not used: found version {cuda.VERSION}, expected {VERSION}, "
                  "that of ftruntime", RuntimeWarning, stacklevel=2)
    return OWN_LIBRARY


LIBRARY = find_library()
lib = ffi.dlopen(LIBRARY)


class FtError(Exception):
    """A call of the library failed.

    The text names the file, what was found and what was expected.

    Attributes:
        code: the ft_status, an int from 1.
        status: its name, for example "FT_EFORMAT".
    """

    def __init__(self, text: str, code: int, status: str):
        super().__init__(text)
        self.code = code
        self.status = status

    def __reduce__(self):
        return FtError, (str(self), self.code, self.status)


def error(text: str, code: int) -> FtError:
    """An error that this package finds itself, with the code of the library."""
    return FtError(text, code, ffi.string(lib.ft_status_name(code)).decode())


def raise_error(code: int, err):
    """Raise what a call has written to its ft_error."""
    text = ffi.string(err.text).decode("utf-8", "replace")
    raise error(text, code)


def call(function, *arguments):
    """Call a function whose last parameter is an ft_error."""
    err = ffi.new("ft_error *")
    code = function(*arguments, err)
    if code:
        raise_error(code, err)


def opened(type_name, close, function, *arguments, owner=None):
    """The object that an opening function returns, which is closed with the last reference.

    Its owner is closed after it.
    """
    out = ffi.new(type_name + " **")
    call(function, out, *arguments)

    def destroy(pointer, owner=owner):
        close(pointer)

    return ffi.gc(out[0], destroy)


def encoded(function, *arguments):
    """The ft_encoding that a function returns as its last result."""
    out = ffi.new("ft_encoding **")
    call(function, *arguments, out)
    return ffi.gc(out[0], lib.ft_encoding_free)


def text_or_none(pointer):
    """A NUL-terminated string of the library."""
    return None if pointer == ffi.NULL else ffi.string(pointer).decode("utf-8", "replace")


def c_string(text):
    """A string, which C ends at the first NUL."""
    if "\0" in text:
        raise error("found a text with a NUL character, expected one without", lib.FT_EARG)
    return ffi.new("char[]", text.encode())


def c_strings(texts):
    """A NULL-terminated array of strings; keep both results until the call has returned."""
    kept = [c_string(text) for text in texts]
    return ffi.new("char *[]", kept + [ffi.NULL]), kept
