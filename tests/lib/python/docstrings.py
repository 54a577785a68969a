"""docstrings.py - sentences of technical documentation: docstrings of Python's standard library.

Which sentences there are depends on the installed Python; their order depends on a seed alone.

SPDX-License-Identifier: Apache-2.0
"""
import ast
import os
import random
import re

MIN_LENGTH, MAX_LENGTH = 30, 300


def sources():
    """Paths of the modules of the standard library, without tests and installed packages."""
    library = os.path.dirname(os.__file__)
    for folder, _, files in os.walk(library):
        if "site-packages" not in folder and "dist-packages" not in folder and "test" not in folder:
            yield from (os.path.join(folder, name) for name in files if name.endswith(".py"))


def first_paragraphs(path):
    """The first paragraph of every docstring of a module, on one line."""
    try:
        with open(path, encoding="utf-8") as file:
            tree = ast.parse(file.read())
    except (SyntaxError, UnicodeDecodeError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)):
            text = ast.get_docstring(node)
            if text:
                yield " ".join(text.split("\n\n")[0].split())


def docstrings(count, seed=1):
    """`count` different sentences in a random order."""
    found = set()
    for path in sources():
        for paragraph in first_paragraphs(path):
            found.update(sentence for sentence in re.split(r"(?<=[.!?]) +(?=[A-Z])", paragraph)
                         if MIN_LENGTH <= len(sentence) <= MAX_LENGTH)
    ordered = sorted(found)
    random.Random(seed).shuffle(ordered)
    if len(ordered) < count:
        raise ValueError(f"the standard library has {len(ordered)} sentences, expected {count}")
    return ordered[:count]
