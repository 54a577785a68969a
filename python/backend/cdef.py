"""The declarations that cffi reads, taken from the headers.

SPDX-License-Identifier: Apache-2.0
"""
import os
import re
import shlex
import subprocess

import library

# What the tools of FT use besides ft.h.  The library in the wheel has the same version, so the
# wheel may use it, too.
PRIVATE = (
    ("runtime/text/translator.h", None),
    ("runtime/text/embedding_prompts.h", ("ft_embedding_prompts", "ft_embedding_prompts_fini")),
    ("runtime/model/model.h", ("ft_translator_open_model", "ft_translator_first_token",
                               "ft_model_open_for_embedding", "ft_model_generates",
                               "ft_embedding_prompts_open_model")),
    ("runtime/graph/model_config.h", ("ft_problem",)),
    ("runtime/scores/class_scores.h", ("ft_sigmoid", "ft_class_probability")),
    ("runtime/scores/tasks/best_answer.h", None),
    ("runtime/scores/tasks/tagged_entities.h", None),
    ("runtime/scores/tasks/top_tokens.h", None),
    ("runtime/data/context_windows.h", None),
    ("runtime/data/images/image.h", None),
    ("runtime/data/images/processor.h", None),
    ("runtime/data/image_files/image_reader.h", None),
    ("runtime/generate/session_sizes.h", None),
)


def preprocess(path):
    """The declarations of one header, without those that it includes."""
    text = re.sub(r"^#(include|pragma).*$", "", path.read_text(), flags=re.MULTILINE)
    text = text.replace("FT_MUST_USE", "") if "define FT_MUST_USE" not in text else text
    command = [*shlex.split(os.environ.get("CC", "cc")), "-E", "-P", "-U__GNUC__", "-xc", "-"]
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, check=True,
                          universal_newlines=True)
    return done.stdout


def declaration(text, name):
    """The function, or the type, of this name."""
    pattern = rf"typedef (?:enum|struct) {name} {{.*?}} {name};|^[\w \*]*\b{name}\([^;]*;"
    found = re.search(pattern, text, flags=re.MULTILINE | re.DOTALL)
    if found is None:
        raise LookupError(f"{name}: no declaration")
    return found.group()


def declarations(sources):
    """All of ft.h, and what PRIVATE names."""
    parts = [preprocess(sources / "runtime/ft.h"), "typedef struct json_t json_t;"]
    for path, names in PRIVATE:
        text = preprocess(sources / path)
        parts += [text] if names is None else [declaration(text, name) for name in names]
    return "\n".join(parts)


def write_module(sources, path):
    """Write the cffi module: Python that describes the ABI, for any version of Python, and its
    version.
    """
    import cffi

    ffi = cffi.FFI()
    ffi.cdef(declarations(sources))
    ffi.set_source("ftruntime._ft", None)
    ffi.emit_python_code(str(path))
    with open(path, "a") as file:
        file.write(f'VERSION = "{library.version()}"\n')
