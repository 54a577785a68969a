#!/usr/bin/env python3
#
# make-chat.py - ask `transformers` what its chat templates make of conversations.
#
#     python3 -m venv /tmp/venv && /tmp/venv/bin/pip install transformers==5.23.0 jinja2
#     /tmp/venv/bin/python tests/golden/make-chat.py
#
# writes chat.jsonl beside itself: ["llama2" or so, [["role", "content"], ...], "text"].
#
# The templates below say what the model cards of Llama 2, Llama 3, Mistral 7B Instruct and Qwen2
# say about their formats; the published ones do more (tools, dates), and the same for these
# conversations.
#
# SPDX-License-Identifier: Apache-2.0

import os

from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from varied_lines import json_row

HERE = os.path.dirname(os.path.abspath(__file__))

# A system message is a part of the first user's turn.
TURNS = '''
{%- set system = messages[0].content if messages[0].role == 'system' -%}
{%- for m in messages if m.role != 'system' -%}
    {%- set head = OPEN + system + CLOSE if loop.first and system else '' -%}
    {%- if m.role == 'user' -%} USER {%- else -%} ASSISTANT {%- endif -%}
{%- endfor -%}'''

LLAMA2 = TURNS.replace('OPEN', "'<<SYS>>\\n'").replace('CLOSE', "'\\n<</SYS>>\\n\\n'").replace(
    'USER', "{{- bos_token ~ '[INST] ' ~ (head ~ m.content) | trim ~ ' [/INST]' -}}").replace(
    'ASSISTANT', "{{- ' ' ~ m.content | trim ~ ' ' ~ eos_token -}}")
MISTRAL = '{{- bos_token -}}' + TURNS.replace('OPEN', "''").replace('CLOSE', "'\\n\\n'").replace(
    'USER', "{{- '[INST] ' ~ head ~ m.content ~ ' [/INST]' -}}").replace(
    'ASSISTANT', "{{- ' ' ~ m.content ~ eos_token -}}")
LLAMA3 = '''
{{- bos_token -}}
{%- for m in messages -%}
    {{- '<|start_header_id|>' ~ m.role ~ '<|end_header_id|>\\n\\n' ~ m.content | trim -}}
    {{- '<|eot_id|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
{%- endif -%}'''
QWEN2 = '''
{%- if messages[0].role != 'system' -%}
    {{- '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' -}}
{%- endif -%}
{%- for m in messages -%}
    {{- '<|im_start|>' ~ m.role ~ '\\n' ~ m.content ~ '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%} {{- '<|im_start|>assistant\\n' -}} {%- endif -%}'''

FORMATS = [('llama2', LLAMA2, '<s>', '</s>'),
           ('llama3', LLAMA3, '<|begin_of_text|>', '<|eot_id|>'),
           ('mistral', MISTRAL, '<s>', '</s>'),
           ('qwen2', QWEN2, None, '<|im_end|>')]

CONTENTS = ['Hello!', '  two\n lines \n', '\u3000wide\u2003\x1f', 'caf\u00e9 \U0001f600', '[INST] \\n']
CONVERSATIONS = [['user'], ['user', 'assistant'], ['user', 'assistant', 'user'],
                 ['system', 'user'], ['system', 'user', 'assistant', 'user', 'assistant', 'user']]


def conversations():
    for roles in CONVERSATIONS:
        for shift in range(len(CONTENTS)):
            yield [(role, CONTENTS[(i + shift) % len(CONTENTS)]) for i, role in enumerate(roles)]


def rows():
    for name, template, begin, end in FORMATS:
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=Tokenizer(models.BPE()), bos_token=begin, eos_token=end,
            chat_template=template)
        for messages in conversations():
            text = tokenizer.apply_chat_template(
                [dict(role=role, content=content) for role, content in messages], tokenize=False,
                add_generation_prompt=messages[-1][0] != 'assistant')
            yield json_row([name, messages, text])


def main():
    path = os.path.join(HERE, 'chat.jsonl')
    with open(path, 'w', encoding='utf-8', newline='\n') as file:
        file.writelines(row + '\n' for row in rows())
    print(path, os.path.getsize(path), 'bytes')


if __name__ == '__main__':
    main()
