"""Conversations by the chat template of a model.

SPDX-License-Identifier: Apache-2.0
"""
from ._library import c_string, encoded, error, ffi, lib, opened


def open_template(model):
    return opened("ft_chat_template", lib.ft_chat_template_close, lib.ft_chat_template_open_model,
                  model._model, owner=model._model)


def encode(template, tokenizer, messages, date, add_generation_prompt):
    """The ids of a conversation: a list of {"role": ..., "content": ...}."""
    kept = []
    array = ffi.new("ft_chat_message[]", max(len(messages), 1))
    for i, message in enumerate(messages):
        for name in ("role", "content"):
            if not isinstance(message.get(name), str):
                raise error(f"message {i}: found no text \"{name}\"", lib.FT_EARG)
            kept.append(c_string(message[name]))
            setattr(array[i], name, kept[-1])
    options = ffi.new("ft_chat_options *", {"date": date,
                                            "no_generation_prompt": not add_generation_prompt})
    row = encoded(lib.ft_chat_encode, template, tokenizer._tokenizer, array, len(messages), options)
    return ffi.unpack(row.ids, row.count) if row.count else []
