"""Write a folder as a wheel; equal folders give equal bytes.

SPDX-License-Identifier: Apache-2.0
"""
import base64
import hashlib
import zipfile


def record_line(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def add(archive, name, data, executable):
    """An entry with the oldest date of the format and one of two modes."""
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.external_attr = (0o100755 if executable else 0o100644) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, data, compresslevel=9)


def write_wheel(folder, path):
    """Write all files of the folder in order, and the RECORD of its .dist-info last."""
    info = next(folder.glob("*.dist-info"))
    record = info / "RECORD"
    lines = ""
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(f for f in folder.rglob("*") if f.is_file() and f != record):
            name, data = file.relative_to(folder).as_posix(), file.read_bytes()
            add(archive, name, data, executable=data.startswith(b"\x7fELF"))
            lines += record_line(name, data)
        name = record.relative_to(folder).as_posix()
        add(archive, name, f"{lines}{name},,\n".encode(), executable=False)


def unpack(path, folder):
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
