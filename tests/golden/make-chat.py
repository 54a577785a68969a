#!/usr/bin/env python3
#
# make-chat.py - ask `transformers` what its chat templates make of conversations, as text and ids.
#
#     python3 -m venv /tmp/venv && /tmp/venv/bin/pip install transformers==5.24.0 jinja2==3.1.6
#     /tmp/venv/bin/python tests/golden/make-chat.py
#
# writes chat.jsonl beside itself. A row {"tokenizer": the file bpe-X.json, "config":
# tokenizer_config.json} is for the rows behind it: {"input": messages and other variables,
# "generation": add_generation_prompt, "text": ..., "ids": ...}.
#
# The templates below say what the model cards of Llama 2, Llama 3, Mistral 7B Instruct, Qwen2 and
# Qwen3 say about their formats; the published ones do more, and the same for these conversations.
#
# SPDX-License-Identifier: Apache-2.0

import json
import os

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

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
THINKING = '''
{%- if tools %}{{ '<|im_start|>system\\n' ~ tools | tojson(indent=2) ~ '<|im_end|>\\n' }}{% endif %}
{%- for m in messages %}
    {{- '<|im_start|>' ~ m.role ~ '\\n' }}
    {%- if m.reasoning_content %}{{ '(' ~ m.reasoning_content ~ ') ' }}{% endif %}
    {{- m.content if m.content is defined else m.tool_calls | tojson }}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}
    {%- if effort is defined %}{{ '/' ~ effort }}{% endif %}
{%- endif %}'''
ROLES = '''
{%- for m in messages %}{{ '<|im_' + ('start' if m.role == 'user' else 'end') + '|>' + m.content }}
{%- endfor %}{{ pad_token }}{{ cls_token }}'''

LLAMA2_TOKENS = {'bos_token': '<s>', 'eos_token': {'content': '</s>', 'lstrip': False}}
LLAMA3_TOKENS = {'bos_token': '<|begin_of_text|>', 'eos_token': '<|eot_id|>'}
QWEN_TOKENS = {'eos_token': '<|im_end|>', 'pad_token': '<|endoftext|>'}
FORMATS = [('bpe-llama2', LLAMA2, LLAMA2_TOKENS), ('bpe-llama2', MISTRAL, LLAMA2_TOKENS),
           ('bpe-llama3', LLAMA3, LLAMA3_TOKENS), ('bpe-qwen2', QWEN2, QWEN_TOKENS),
           ('bpe-qwen2', ROLES, QWEN_TOKENS)]

CONTENTS = ['Hello!', '  two\n lines \n', '\u3000wide\u2003\x1f', 'caf\u00e9 \U0001f600', '[INST] \\n',
            '<|im_ start|> < s>', 'the end <']
CONVERSATIONS = [['user'], ['user', 'assistant'], ['user', 'assistant', 'user'],
                 ['system', 'user'], ['system', 'user', 'assistant', 'user', 'assistant', 'user']]

TOOL = {'type': 'function', 'function': {
    'name': 'area', 'description': 'Area of a "circle" \u00e9', 'parameters': {
        'type': 'object', 'properties': {'r': {'type': 'number', 'default': 1.5}}}}}
CALL = {'id': 'x', 'type': 'function', 'function': {'name': 'area', 'arguments': {'r': 2, 'u': None}}}
INPUTS = [
    {'messages': [{'role': 'user', 'content': 'Hi', 'name': None}], 'tools': [TOOL]},
    {'messages': [{'role': 'user', 'content': 'Hi'},
                  {'role': 'assistant', 'content': None, 'tool_calls': [CALL]},
                  {'role': 'tool', 'content': '12.5'}], 'tools': [TOOL], 'effort': 'high'},
    {'messages': [{'role': 'user', 'content': 'Hi'},
                  {'role': 'assistant', 'content': 'Yo', 'thinking': 'hm', 'reasoning_content': None},
                  {'role': 'assistant', 'content': 'Yo', 'reasoning': 'so'},
                  {'role': 'user', 'content': 'Bye'}]},
]


def tokenizer_of(name, template, tokens):
    plain = {key: value['content'] if isinstance(value, dict) else value
             for key, value in tokens.items()}
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_file(os.path.join(HERE, name + '.json')),
        chat_template=template, **plain)


def row(name, template, tokens, given, generation):
    tokenizer = tokenizer_of(name, template, tokens)
    others = {key: value for key, value in given.items() if key != 'messages'}
    text, ids = [tokenizer.apply_chat_template(
        given['messages'], tokenize=tokenize, add_generation_prompt=generation,
        **({'return_dict': False} if tokenize else {}), **others) for tokenize in (False, True)]
    return {'tokenizer': name, 'config': {**tokens, 'chat_template': template}, 'input': given,
            'generation': generation, 'text': text, 'ids': ids}


def rows():
    for name, template, tokens in FORMATS:
        for roles in CONVERSATIONS:
            for shift in range(len(CONTENTS)) if len(roles) > 3 else (0, 3, 5):
                given = {'messages': [
                    {'role': role, 'content': CONTENTS[(i + shift) % len(CONTENTS)]}
                    for i, role in enumerate(roles)]}
                yield row(name, template, tokens, given, roles[-1] != 'assistant')
    for given in INPUTS:
        for generation in (False, True):
            yield row('bpe-qwen2', THINKING, QWEN_TOKENS, given, generation)


def main():
    path = os.path.join(HERE, 'chat.jsonl')
    with open(path, 'w', encoding='utf-8', newline='\n') as file:
        last = {}
        for one in rows():
            same = {key: one[key] for key in ('tokenizer', 'config')}
            if same != last:
                file.write(json.dumps(same, separators=(',', ':')) + '\n')
            last = same
            rest = {key: value for key, value in one.items() if key not in same}
            file.write(json.dumps(rest, separators=(',', ':')) + '\n')
    print(path, os.path.getsize(path), 'bytes')


if __name__ == '__main__':
    main()
