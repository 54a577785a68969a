"""Decoders with peculiar tokenizers, made of the generated one.

SPDX-License-Identifier: Apache-2.0
"""
import functools
import json
import os
import shutil

import support

MARKUP = ("<script>document.title='owned'</script>",
          "<img src=x onerror=\"document.title='owned'\">", "<b>bold</b>", "&lt;",
          "</div><h1>", "<style>*{display:none}</style>")
FIRST_FREE = 260  # id behind those of make-decoder


def edited(name, file, edit):
    """The generated decoder with another JSON file."""
    support.generated("decoder")
    folder = os.path.join(support.FOLDER, name)
    shutil.copytree(os.path.join(support.FOLDER, "decoder"), folder)
    path = os.path.join(folder, file)
    with open(path) as source:
        content = json.load(source)
    edit(content)
    with open(path, "w") as out:
        json.dump(content, out)
    return support.converted(folder, name)


@functools.lru_cache(maxsize=None)
def markup():
    """A decoder that writes HTML."""
    def edit(tokenizer):
        for id in range(FIRST_FREE, 300):
            tokenizer["added_tokens"].append({
                "id": id, "content": MARKUP[id % len(MARKUP)] + " " * (id // len(MARKUP)),
                "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                "special": False})
    return edited("markup", "tokenizer.json", edit)


@functools.lru_cache(maxsize=None)
def without_template():
    """A decoder without a chat template."""
    return edited("plain", "tokenizer_config.json", lambda config: config.pop("chat_template"))
