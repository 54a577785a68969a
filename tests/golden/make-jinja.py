#!/usr/bin/env python3
#
# make-jinja.py - ask jinja2, set up as transformers does it for chat templates, what templates make.
#
#     python3 -m venv /tmp/venv && /tmp/venv/bin/pip install jinja2==3.1.6
#     /tmp/venv/bin/python tests/golden/make-jinja.py
#
# writes jinja.jsonl beside itself: ["template", "text"], or ["template", null] where jinja2 fails.
# The variables of all templates are the first row.
#
# SPDX-License-Identifier: Apache-2.0

import datetime
import json
import os

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = os.path.dirname(os.path.abspath(__file__))
NOW = datetime.datetime(2026, 11, 20, 12, 0)

VARIABLES = {
    'n': 5, 'neg': -7, 'x': 2.5, 'big': 9007199254740993, 't': True, 'f': False, 'nothing': None,
    's': 'Hello, World', 'e': '', 'sp': '  a\tb \n', 'u': 'Straße ÉÀ 漢字 😀', 'q': "it's \"so\"",
    'l': [3, 1, 2], 'el': [], 'mixed': [1, 'two', 3.0, None, True, [4], {'k': 'v'}],
    'd': {'b': 1, 'a': 2, 'C': 3}, 'ed': {}, 'shadow': {'items': 'I', 'keys': 1, 'x y': 2},
    'names': ['bob', 'Alice', 'carol', 'alice'],
    'messages': [{'role': 'system', 'content': ' Be terse. '},
                 {'role': 'user', 'content': 'Hi <b>'},
                 {'role': 'assistant', 'content': 'Yo', 'meta': {'score': 0.5, 'tags': ['x', 'y']}},
                 {'role': 'user', 'content': 'Bye'}],
    'lines': 'one\ntwo\r\n\nthree\n', 'csv': 'a,b,,c', 'th': '<think>\nhm\n</think>\nanswer',
}


class Generation(jinja2.ext.Extension):
    tags = {'generation'}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(['name:endgeneration'], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method('_run'), [], [], body).set_lineno(line)

    def _run(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters['tojson'] = tojson
    env.globals['raise_exception'] = raise_exception
    env.globals['strftime_now'] = NOW.strftime
    return env


# Expressions: each becomes "{{ EXPRESSION }}".
EXPRESSIONS = r'''
1
-1
+5
007
1_000
0x1F
0b101
0o17
1.5
1e3
1.5e-7
1e16
1e15
123456789012345680.0
1e22
0.1 + 0.2
1/3
100.0
1e-5
0.0001
-0.0
2 ** 10
2 ** -1
2 ** 0.5
-2 ** 2
2 ** 3 ** 2
7 // 2
-7 // 2
7 % 3
-7 % 3
7 % -3
7.5 // 2
-7.5 % 2
7.5 % -2
6 / 3
n + x
n - 10
n * 2
neg|abs
big + 0
1 / 0
1 % 0
1 // 0
9223372036854775807
'a' 'b' "c"
'a' + 'b'
'a' + 1
1 + 'a'
'a' * 3
3 * 'ab'
'a' * -1
[1] * 2
[1] + [2]
[1] + (2,)
(1,) + (2,)
'a' ~ 1 ~ none ~ true ~ 1.0
'%s is %d' % ('x', 3)
'%s' % 'x'
'%s' % 5
'%5s|%-5s|' % ('a', 'b')
'%05d|%+d|% d' % (3, 4, 5)
'%.2f|%e|%g' % (1.005, 12345.678, 0.00001)
'%x %X %o' % (255, 255, 8)
'%(a)s %(b)d' % {'a': 1, 'b': 2}
'%%' % ()
'%s %s' % ('a',)
'%s' % ('a', 'b')
'%d' % 'a'
'%r' % 'a'
'%s' % [1, 2]
'plain' % {'a': 1}
'plain' % 1
'\n\t\\\'\"\x41\u00e9\U0001f600'
'\q\8'
"it's"
'say "x"'
t
f
nothing
true
True
none
None
l
mixed
d
ed
el
(1, 2)
(1,)
()
[]
{}
{'a': 1, 2: 'b', none: [true]}
[1, [2, (3,)], {'x': 'y'}]
['a\nb', "it's", 'q"', "b'o\"th", 'é\u200b\x7f\xad']
u
[u]
q
[q]
1, 2
missing
missing.x
missing['x']
missing is defined
missing.x is defined
d.zzz
d.zzz.y
d['zzz']
nothing.x
nothing.x.y
l.x
l[0]
l[-1]
l[3]
l[-4]
l['a']
l[true]
l[1.0]
s[0]
s[-1]
s[100]
u[4]
u[-1]
u[-3:]
u[:4]
u[1:8:2]
s[::-1]
s[5:2]
s[-5:]
s[:-5]
s[::2]
s[10:0:-3]
s[:100]
s[-100:3]
l[1:]
l[:1]
l[::-1]
l[5:]
l[-2:]
l[::0]
(1,2,3)[1:]
(1,2,3)[0]
range(5)[1]
range(5)|list
range(2, 8, 3)|list
range(5, 0, -2)|list
range(0)|list
range(100001)|list
range(5)|length
range(5)|join
range(3) is sequence
d.a
d['a']
d.items()|list
d.keys()|list
d.values()|list
d.items()|length
d.get('a')
d.get('z')
d.get('z', 9)
d.get('z') is none
shadow.items is string
shadow['items']
shadow.keys is callable
shadow['x y']
d['items'] is callable
d.items is callable
d is mapping
messages[0]['role']
messages[0].content
messages[-1].content
messages[2].meta.tags[1]
messages[1:]|length
messages[::-1][0].content
messages|length
messages|map(attribute='role')|list
messages|map(attribute='meta.score')|list
messages|map(attribute='meta', default='-')|join(',')
messages|map(attribute='meta.score', default=0)|list
names|map('upper')|list
names|map('replace', 'b', 'x')|join
names|map('length')|sum
messages|selectattr('role', 'equalto', 'user')|list|length
messages|selectattr('role', '==', 'user')|map(attribute='content')|join('|')
messages|selectattr('meta')|list|length
messages|selectattr('meta', 'defined')|list|length
messages|selectattr('meta.score', 'gt', 0.1)|list|length
messages|rejectattr('role', 'in', ['user', 'system'])|map(attribute='content')|list
messages|rejectattr('meta')|list|length
l|select('odd')|list
l|select('gt', 1)|list
l|reject('even')|list
mixed|select('string')|list
mixed|select|list
mixed|reject('none')|list|length
l|select('divisibleby', 3)|list
1 == 1.0
1 == true
'a' == 'a'
'a' == 1
none == none
[1, 2] == [1, 2]
[1] == (1,)
{'a': 1} == {'a': 1.0}
{'a': 1, 'b': 2} == {'b': 2, 'a': 1}
missing == missing
missing == none
1 != 2
1 < 2 < 3
1 < 3 < 2
3 > 2 >= 2
'a' < 'b'
'a' < 'B'
'é' > 'z'
[1, 2] < [1, 3]
[1] < [1, 0]
(1, 'a') < (1, 'b')
1 < 'a'
none < 1
missing < 1
true < 2
'ell' in s
'z' in s
'z' not in s
1 in l
'a' in d
'a' not in d
1 in d
[4] in mixed
'' in ''
1 in 'a'
1 in 5
'x' in missing
'x' in nothing
missing in l
missing in s
not true
not ''
not missing
true and 'x'
'' and 'x'
'' or 'x'
0 or none
el or 'empty'
true or 1/0
false and 1/0
1 if true else 2
1 if false else 2
1 if false
(1 if false) is defined
'a' if n > 3 else 'b' if n > 1 else 'c'
not 1 == 2
not (1 in l)
n is defined
n is not defined
n is undefined
nothing is none
nothing is not none
missing is none
s is string
n is string
n is number
x is number
t is number
t is integer
n is integer
x is float
n is float
t is boolean
n is boolean
t is true
n is true
f is false
none is false
l is sequence
s is sequence
d is sequence
n is sequence
missing is sequence
(l|map('string')) is sequence
d.items() is sequence
l is iterable
s is iterable
d is iterable
n is iterable
missing is iterable
nothing is iterable
d.items() is iterable
(l|map('string')) is iterable
d is mapping
l is mapping
missing is mapping
n is even
n is odd
n is divisibleby 5
n is divisibleby(3)
n is eq 5
n is equalto 5
n is ne 5
n is lt 6
n is gt 6
n is le 5
n is ge 6
n is greaterthan 1
n is lessthan 1
n is in [5, 6]
n is not in [5, 6]
'a' is in 'abc'
'abc' is lower
'ABC' is upper
'Abc' is lower
n is sameas 5
l is sameas l
[1] is sameas [1]
none is sameas none
range is callable
s is callable
s is defined and n is defined
s is defined or missing
s is string if t else 1
n is divisibleby 2 or n is divisibleby 5
s is not string or l is not mapping
'x' is eq 'x' is eq true
s|upper
s|lower
u|upper
u|lower
'ΟΔΥΣΣΕΥΣ ΑΣ'|lower
'ǆ ß'|capitalize
'hello wORLD-foo (bar) [x] <y> {z} it\'s'|title
'hello wORLD foo-bar it\'s x1y'.title()
'hELLO wORLD'|capitalize
'hELLO'.capitalize()
'hELLO wORLD'.swapcase()
sp|trim
'[' ~ sp|trim ~ ']'
'xxaxx'|trim('x')
'\u3000\x1fa\u2003'|trim
n|trim
sp.strip()
sp.lstrip()
sp.rstrip()
'xyaxy'.strip('xy')
'xyaxy'.lstrip('yx')
'xyaxy'.rstrip('y')
'éaé'.strip('é')
'aé'.strip('aé')
s.strip(none)
s|length
u|length
l|length
d|length
missing|length
nothing|length
5|length
l|count
(l|map('string'))|length
missing|default('d')
nothing|default('d')
''|default('d')
''|default('d', true)
''|default('d', boolean=true)
nothing|d('x', true)
missing|default
d.zzz|default('q')
d.zzz.y|default('q')
l|join
l|join(', ')
mixed|join('-')
el|join('x')
s|join('.')
names|join(d='+')
messages|join('/', attribute='role')
missing|join(',')
5|join
l|first
el|first
s|first
d|first
l|last
s|last
el|last
(l|map('string'))|first
(l|map('string'))|last
l|list
s|list
d|list
(1,2)|list
5|list
missing|list
d|items|list
ed|items|list
missing|items|list
l|items|list
nothing|items|list
s|replace('l', 'L')
s|replace('l', 'L', 1)
s|replace('', '-')
'ab'|replace('', '-', 1)
s|replace('zzz', 'y')
n|replace(5, 6)
s.replace('o', '0')
s.replace('o', '0', 1)
s.replace('o')
s|reverse
l|reverse|list
(1,2)|reverse|list
l|sort
l|sort(reverse=true)
names|sort
names|sort(case_sensitive=true)
names|sort(true)
messages|sort(attribute='role')|map(attribute='content')|join(',')
messages|sort(attribute='role,content')|map(attribute='content')|join(',')
messages|sort(reverse=true, attribute='role')|map(attribute='content')|join(',')
mixed|sort
[[2, 1], [1, 5]]|sort(attribute=1)
d|dictsort
d|dictsort(true)
d|dictsort(by='value')
d|dictsort(reverse=true)
d|dictsort(false, 'value', true)
l|dictsort
names|unique|list
names|unique(true)|list
[1, 1.0, true, 2]|unique|list
messages|unique(attribute='role')|map(attribute='content')|list
l|min
l|max
names|min
names|max
names|max(true)
el|min
messages|max(attribute='content')|tojson
l|sum
el|sum
[0.1, 0.2]|sum
l|sum(start=10)
[{'v': 1}, {'v': 2}]|sum('v')
[{'v': 1}, {'v': 2}]|sum(attribute='v', start=5)
['a']|sum
x|round
2.675|round(2)
2.5|round
3.5|round
1.25|round(1)
2.1|round(method='ceil')
2.9|round(0, 'floor')
2.123|round(2, 'ceil')
5|round
'a'|round
'42'|int
' 42 '|int
'4_2'|int
'4__2'|int
'0x1f'|int(base=16)
'0b11'|int(base=2)
'ff'|int(0, 16)
'3.9'|int
'1e3'|int
'x'|int
'x'|int(7)
'x'|int(default=-1)
3.99|int
-3.99|int
true|int
none|int
missing|int
[1]|int
'inf'|int
'nan'|int(3)
'2.5'|float
' 1e3 '|float
'x'|float
'x'|float(1.5)
'inf'|float
'-Infinity'|float
'nan'|float
'0x10'|float
7|float
none|float
n|string
x|string
l|string
none|string
missing|string
t|string + '!'
-3|abs
neg|abs
2.5|abs
'a'|abs
'a b  c'|wordcount
'it\'s 3_x'|wordcount
lines|indent
lines|indent(2)
lines|indent(2, true)
lines|indent(2, true, true)
lines|indent(width='> ')
lines|indent(first=true)
''|indent
'one'|indent
'%s-%s'|format('a', 1)
'%(x)s'|format(x=2)
'%d'|format('a')
d|attr('a')
d|attr('items') is callable
'a b'|attr('upper') is callable
l|tojson
d|tojson
mixed|tojson
u|tojson
q|tojson
u|tojson(ensure_ascii=true)
'\x7f\x1f\b\f/<>&'|tojson
'\x7f\x1f'|tojson(true)
d|tojson(indent=2)
mixed|tojson(indent=4)
el|tojson(indent=2)
ed|tojson(indent=2)
d|tojson(indent=0)
d|tojson(indent='--')
d|tojson(separators=(',', ':'))
d|tojson(indent=1, separators=(' ,', ' : '))
d|tojson(sort_keys=true)
messages|tojson
messages|tojson(indent=4)
1e100|tojson
1.0|tojson
{1: 2, 1.5: 3, true: 4, none: 5}|tojson
{(1,2): 3}|tojson
(1, 'a')|tojson
missing|tojson
range(3)|tojson
d.items()|tojson
'x'|float('nan')|tojson
('inf'|float)|tojson
s.split()
s.split(',')
csv.split(',')
csv.split(',', 1)
csv.split(',', maxsplit=2)
csv.split(sep=',')
'  a  b c '.split()
'  a  b c '.split(none, 1)
'a b'.split(' ')
''.split()
''.split(',')
'a'.split('')
csv.rsplit(',', 1)
csv.rsplit(',')
csv.rsplit(',', 2)
th.split('</think>')[-1].lstrip('\n')
th.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n')
lines.splitlines()
lines.splitlines(true)
'a\u2028b\x85c\x0bd'.splitlines()
''.splitlines()
s.startswith('Hell')
s.startswith('ell', 1)
s.startswith(('x', 'H'))
s.startswith('')
s.endswith('ld')
s.endswith('lo', 0, 5)
s.endswith(('x', 'd'))
s.startswith(1)
s.find('o')
s.find('o', 5)
s.find('zz')
u.find('漢')
s.rfind('o')
s.index('o')
s.index('zz')
s.count('l')
s.count('')
'aaaa'.count('aa')
','.join(names)
','.join('abc')
','.join(l)
'abc'.isalpha()
'ab1'.isalpha()
'ab1'.isalnum()
'123'.isdigit()
'1.5'.isdigit()
'½'.isnumeric()
' \t'.isspace()
''.isspace()
'abc'.islower()
'ABC1'.isupper()
'123'.isupper()
'漢'.isalpha()
'abc'.isascii()
'é'.isascii()
'foobar'.removeprefix('foo')
'foobar'.removesuffix('bar')
'foobar'.removeprefix('bar')
'a-b-c'.partition('-')
'a-b-c'.rpartition('-')
'abc'.partition('-')
'abc'.rpartition('-')
'ab'.center(7)
'ab'.center(7, '*')
'abc'.center(6, '*')
'ab'.ljust(5, '.')
'ab'.rjust(5)
'ab'.ljust(1)
l.index(2)
l.index(9)
l.count(1)
l.copy()
l.append(4)
l.append is defined
d.update({'x': 1})
d.copy()
d.pop('a')
s.__class__
''.__class__.__mro__
missing()
s()
n.upper
n.upper()
d.a.b
strftime_now('%Y-%m-%d')
strftime_now('%d %b %Y')
strftime_now('%B %d, %Y %H:%M:%S %p %j %a %A')
strftime_now('%%')
raise_exception('no: ' ~ s)
dict(a=1, b=2)
dict({'a': 1}, b=3)
dict([('a', 1), ('b', 2)])
namespace(a=1).a
namespace({'a': 1}, b=2).b
namespace(a=1)['a']
namespace().zzz is defined
s|upper|lower|length
(s ~ '!')|length
-n|abs
-l[0]
l|length > 2
l|length - 1
not l|length
'a'|upper ~ 'b'|upper
s.split(', ')[1]|upper
(s|lower).startswith('h')
s|lower().title()
{'a': {'b': [1, {'c': 'deep'}]}}.a.b[1].c
[1, 2, 3][1]
'abc'[1]
(l + [9])[-1]
[messages[0], messages[1]]|length
(messages|first).role
l.0
messages.0.role
l[n - 4]
s|safe
(s ~ n)|safe
{'a': 1}['a']
"a" if s == "Hello, World" and l[0] == 3 else "b"
'<' ~ '|' ~ '>'
[1,]
{'a': 1,}
(1,)[0]
'a' in ['a', 'b'] and 'c' not in 'ab'
1 is defined
[] is defined
l == [3, 1, 2]
'a'|string|upper
'x' * n
[n] * n
9007199254740993 == 9007199254740992.0
s|trim|replace('Hello', 'Bye')|upper
messages[0].content|trim
messages[0]['content'].strip() ~ '|'
(messages|last)['content']
messages|map(attribute='content')|map('trim')|join('\n')
messages|map('tojson')|first
names|sort|first
names|select('in', ['bob'])|list
names|reject('eq', 'bob')|list
{'b': 1, 'a': 2}|tojson(sort_keys=true, indent=2)
'a\\b'
'tab\there'
'line\
joined'
s|nope
s is nope
s.nope()
foo(
[1
{'a' 1}
1 +
(1
a b
'unterminated
1 ? 2
a.
a[
a[]
|upper
is
s|
not
x = 1
s is string is string
f(a=1, 2)
'\ud800'
'''.strip('\n')

# Whole templates.
TEMPLATES = [
    'plain text', '', '\n', 'a\n', 'a\n\n', '\na', 'a\r\nb\rc\n', '{', '{ {', '}}', '%}', '{ { x',
    '{{ s }}', '{{s}}', ' {{ s }} ', 'a\n{{ s }}\nb', 'a\n  {{- s -}}  \nb', '{{- s }}', 'x {{- s -}} y',
    '{{+ s }}', 'a {{ -n }}', '{{ 5 -}}\n\n  x', '{{-5}}',
    '{# c #}', 'a{# c #}b', 'a\n{# c #}\nb', 'a\n  {# c #}  \nb', 'a {#- c -#} b', '{#--- x ---#}b',
    'a\n  {#- c #}\n b', '{# multi\nline #}\nx', '{# {{ x }} {% if %} #}', '{#+ c +#}\nx', '{##}x', '{#-#} x',
    '{% if t %}\nyes\n{% endif %}\nend', 'a\n  {% if t %}\n  yes\n  {% endif %}\nend',
    'a {% if t %} yes {% endif %} end', 'a\n{%- if t -%}\n yes\n{%- endif -%}\n end',
    'a\n  {%+ if t %}\nyes\n  {%+ endif +%}\nend', 'x  {% if t %}y{% endif %}  \nz',
    '\t{% if t %}x{% endif %}', '  {% if t +%}\n x{% endif %}', '\u00a0{% if t %}x{% endif %}',
    '  {{ s }}\n  {% if t %}\n  {{ n }}\n  {% endif %}\n', '{% if t %}{% endif %}\n\n{% if f %}{% endif %}',
    '{% if t %}\n\n\nx{% endif %}', 'a{% if t %}\n  {% if t %}\n b{% endif %}\n{% endif %}c',
    '{% raw %}{{ x }}{% endraw %}', 'a\n  {% raw %}\n {{ x }} \n  {% endraw %}\nb', '{%- raw -%} x {%- endraw -%} y',
    '{% raw %}{% if %}{% endraw %}', '{% raw %}x', '{%raw%}x{%endraw%}', '{% raw %}{% endrawx %}{% endraw %}',
    '{% if t %}1{% else %}2{% endif %}', '{% if f %}1{% elif n == 5 %}2{% elif t %}3{% else %}4{% endif %}',
    '{% if missing %}1{% endif %}x', '{% if f %}1{% elif f %}2{% endif %}', '{% if t %}{% if f %}a{% else %}b{% endif %}{% endif %}',
    '{% if not f and (n > 3 or f) %}ok{% endif %}', '{% if t, f %}tuple{% endif %}', '{% if t %}', '{% endif %}', '{% if %}x{% endif %}',
    '{% for i in l %}{{ i }},{% endfor %}', '{% for i in el %}{{ i }}{% else %}none{% endfor %}',
    '{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}',
    '{% for i in l %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }} {% endfor %}',
    '{% for i in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }} {% endfor %}',
    '{% for i in l %}{{ loop.depth }}{{ loop.depth0 }}{% for j in l %}{{ loop.depth }}{% endfor %} {% endfor %}',
    '{% for i in range(6) %}{{ loop.cycle("a", "b", "c") }}{% endfor %}', '{% for i in [1,1,2,2,1] %}{{ loop.changed(i) }} {% endfor %}',
    '{% for i in l %}{{ loop.nope is defined }}{% endfor %}', '{% for i in l %}{{ loop["index"] }}{% endfor %}',
    '{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}', '{% for k, v in d|items %}{{ k }}={{ v }};{% endfor %}',
    '{% for k in d %}{{ k }}{% endfor %}', '{% for k, v in d|dictsort %}{{ k }}{{ v }}{% endfor %}', '{% for c in s %}{{ c }}.{% endfor %}',
    '{% for (a, b) in [(1, 2), [3, 4]] %}{{ a }}{{ b }} {% endfor %}', '{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}',
    '{% for a, b in [(1,)] %}{% endfor %}', '{% for a, b in [(1,2,3)] %}{% endfor %}', '{% for a, b in [1] %}{% endfor %}',
    '{% for i in 5 %}{% endfor %}', '{% for i in missing %}x{% else %}e{% endfor %}', '{% for i in nothing %}x{% endfor %}',
    '{% for i in l if i > 1 %}{{ i }}{{ loop.index }}{{ loop.last }} {% endfor %}', '{% for i in l if i > 9 %}x{% else %}none{% endfor %}',
    '{% for m in messages if m.role == "user" %}{{ m.content }}|{% endfor %}', '{% for m in messages[1:] %}{{ m.role }} {% endfor %}',
    '{% for i in l %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}', '{% for i in l %}{% if i == 1 %}{% break %}{% endif %}{{ i }}{% endfor %}',
    '{% for i in l %}{% for j in l %}{% if j == 1 %}{% break %}{% endif %}{{ i }}{{ j }} {% endfor %}{% endfor %}',
    '{% break %}', '{% for i in l %}{% endfor %}{{ i }}', '{% for i in l %}{% set z = i %}{% endfor %}{{ z }}',
    '{% set z = 0 %}{% for i in l %}{% set z = z + i %}{{ z }} {% endfor %}{{ z }}', '{% for i in l %}{{ z is defined }}{% set z = 1 %}{{ z }} {% endfor %}',
    '{% for i in l %}{% if loop.first %}{% set w = "F" %}{% endif %}{{ w }};{% endfor %}',
    '{% for l in l %}{{ l }}{% endfor %}{{ l }}', '{% for i in l|sort %}{{ i }}{% endfor %}', '{% for i in [1,2] + [3] %}{{ i }}{% endfor %}',
    '{% for i in (l if t else el) %}{{ i }}{% endfor %}', '{% for i in l %}\n  {{ i }}\n{% endfor %}\nend', '{% for i in l -%}\n  {{ i }}\n{%- endfor %}\nend',
    '{% for i in l recursive %}{{ i }}{% endfor %}' if False else '{% for i in l %}{{ loop }}{% endfor %}' if False else '{% for i in l %}{{ i }}{% endfor %}!',
    '{% set g = l|map("string") %}{% for i in g %}{{ i }}{% endfor %}-{% for i in g %}{{ i }}{% else %}gone{% endfor %}',
    '{% set g = l|select %}{{ g|first }}{{ g|list }}', '{% for i in d.keys() %}{{ i }}{% endfor %}',
    '{% set a = 1 %}{{ a }}', '{% set a = 1, 2 %}{{ a }}', '{% set a, b = 1, 2 %}{{ a }}{{ b }}', '{% set (a, b) = [1, 2] %}{{ a }}{{ b }}',
    '{% set a = n if t else 0 %}{{ a }}', '{% set a %}block {{ n }}{% endset %}[{{ a }}]', '{% set a | upper %}x{{ s }}{% endset %}{{ a }}',
    '{% set a | upper | replace("X", "y") %}x{% endset %}{{ a }}', '{% set a %}{% set b = 1 %}{% endset %}{{ b is defined }}',
    '{% set a %}\n  x\n{% endset %}[{{ a }}]', '{% if t %}{% set a = 7 %}{% endif %}{{ a }}', '{% set s = s|upper %}{{ s }}', '{% set true = 1 %}',
    '{% set ns = namespace(x=1) %}{% for i in l %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}',
    '{% set ns = namespace() %}{% set ns.a = 1 %}{{ ns.a }}{{ ns.b is defined }}{{ ns.b }}', '{% set d.x = 1 %}', '{% set missing.x = 1 %}',
    '{% set ns = namespace(found=false) %}{% for m in messages %}{% if m.role == "user" %}{% set ns.found = true %}{% endif %}{% endfor %}{{ ns.found }}',
    '{% set ns = namespace(l=[]) %}{% for i in l %}{% set ns.l = ns.l + [i * 2] %}{% endfor %}{{ ns.l }}', '{% set ns = namespace(s="") %}{% for m in messages %}{% set ns.s = ns.s ~ m.content %}{% endfor %}{{ ns.s }}',
    '{% macro m() %}x{% endmacro %}{{ m() }}{{ m() }}', '{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(a=4) }} {{ m(b=5, a=6) }}',
    '{% macro m(a) %}[{{ a }}]{% endmacro %}{{ m() }}', '{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}', '{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=2) }}',
    '{% macro m(a) %}{{ a is defined }}{% endmacro %}{{ m() }}', '{% macro m(a, a2=a) %}{{ a2 }}{% endmacro %}{{ m(3) }}',
    '{% macro m(x) %}{% if x > 0 %}{{ x }}{{ m(x - 1) }}{% endif %}{% endmacro %}{{ m(4) }}', '{% macro m() %}{{ n }}{{ s }}{% endmacro %}{{ m() }}',
    '{% macro m() %}{{ later }}{% endmacro %}{% set later = 5 %}{{ m() }}', '{% macro m() %}{% set n = 9 %}{{ n }}{% endmacro %}{{ m() }}{{ n }}',
    '{% macro m() %}{{ i is defined }}{% endmacro %}{% for i in l %}{{ m() }}{% endfor %}', '{% macro m() %}{{ loop is defined }}{% endmacro %}{% for i in l %}{{ m() }}{% endfor %}',
    '{% macro m(a) %}\n  <{{ a }}>\n{% endmacro %}\n[{{ m("x") }}]', '{%- macro m(a) -%}\n  <{{ a }}>\n{%- endmacro -%}\n[{{ m("x") }}]', '{{ m() }}{% macro m() %}x{% endmacro %}',
    '{% macro a() %}A{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}', '{% macro m() %}x{% endmacro %}{{ m()|upper }}{{ m() ~ "y" }}{{ m()|length }}',
    '{% macro m(x="d") %}{{ x }}{% endmacro %}{{ m(none) }}{{ m(missing) }}', '{% for i in l %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}',
    '{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}body{% endcall %}', '{% macro m() %}[{{ caller(1, b=2) }}]{% endmacro %}{% call(a, b) m() %}{{ a }}{{ b }}{% endcall %}',
    '{% macro m(x) %}{{ x }}{{ caller() }}{% endmacro %}{% for i in l %}{% call m(i) %}<{{ i }}>{% endcall %}{% endfor %}',
    '{% macro m() %}{% endmacro %}{% macro m(a) %}', '{% macro m(a=1, b) %}{% endmacro %}', '{% macro m(a %}{% endmacro %}',
    '{% filter upper %}abc {{ s }}{% endfilter %}', '{% filter upper|replace("A", "x") %}abc{% endfilter %}', '{% filter indent(2) %}a\nb{% endfilter %}',
    '{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}', '{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q }}', '{% with a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}{% endwith %}',
    '{% generation %}x{{ n }}{% endgeneration %}', '{% for m in messages %}{% if m.role == "assistant" %}{% generation %}{{ m.content }}{% endgeneration %}{% endif %}{% endfor %}',
    '{% generation %}{% set z = 1 %}{% endgeneration %}{{ z is defined }}', '{%- generation -%}\n x \n{%- endgeneration -%}',
    '{% nope %}', '{% include "x" %}', '{% extends "x" %}', '{% do l.append(1) %}', '{{ s', '{% if t', '{# x', '{{ s }', '{% for %}{% endfor %}', '{% set %}', '{% set a = %}', '{{ }}', '{% endfor %}',
    '{% for i in l %}', '{% if t %}{% endfor %}', '{% else %}', '{{ {"a": {"b": 1}}.a.b }}', '{{ {"a": {}} }}', '{{ "}}" }}', "{{ '{{' }}", '{% set x = "%}" %}{{ x }}', '{{ "a" -}} b', '{{ [1,\n2,\n3] }}',
    '{{ s\n|\nupper }}', '{%\nif t\n%}x{%\nendif\n%}', '{{ {\n"a": 1\n}\n}}', '{{(1)}}{{[1]}}', '{%if t%}a{%endif%}', '{%-if t-%} a {%-endif-%} b', '{{s}}{{n}}\n{{s}}', 'é{{ u }}漢', '\ufeffx', '<|im_start|>{{ s }}<|im_end|>\n',
    '{% set content = messages[1].content if messages[1].content is string else "" %}{{ content }}',
    '{%- for message in messages -%}\n    {%- if message.role == "user" -%}\n        {{ "<u>" + message.content + "</u>" }}\n    {%- endif -%}\n{%- endfor -%}\n',
    '{% if messages[0].role == "system" %}{% set m = messages[1:] %}{% else %}{% set m = messages %}{% endif %}{% for x in m %}{{ x.role }}: {{ x.content }}\n{% endfor %}',
    '{% for message in messages %}{% if (message.role == "user") != (loop.index0 % 2 == 0) %}{{ raise_exception("must alternate") }}{% endif %}{% endfor %}',
    "{{ '<|' + messages[0]['role'] + '|>\\n' + messages[0]['content'] | trim + eos }}", "{{ 'x' + messages[0].content | trim + 'y' }}", '{% set a = {"k": [1, 2]} %}{% for k, v in a.items() %}{{ k }}{{ v[0] }}{% endfor %}',
    '{% set ns = namespace(n=0) %}{% macro inc() %}{% set ns.n = ns.n + 1 %}{{ ns.n }}{% endmacro %}{{ inc() }}{{ inc() }}', '{% set a = [1] %}{% set b = a %}{{ a is sameas b }}',
    '{% if "tool_calls" in messages[2] and messages[2].tool_calls %}T{% else %}-{% endif %}', '{{ messages[2].tool_calls }}{{ messages[2].tool_calls is defined }}', '{{ messages[2].tool_calls[0] }}',
    '{% for x in l %}{{ x }}{{ ", " if not loop.last }}{% endfor %}', '{% for x in l %}{{ x }}{{ "," if not loop.last else "." }}{% endfor %}', '{{ (n > 3) ~ (n < 3) }}', '{{ 1 if n else 2 ~ "x" }}',
    '{% set x %}{% for i in l %}{{ i }}{% endfor %}{% endset %}{{ x|length }}', '{% set _ = l.copy() %}{{ _ }}', '{% if n is not none and s is string and l is iterable and l is not mapping %}y{% endif %}',
    '{{ "a" }}{% if t %}{{ "b" }}{% endif -%}\n  {{ "c" }}', '{{ range }}' if False else '{{ range is defined }}', '{% set range = 3 %}{{ range }}', '{% set loop = 4 %}{{ loop }}', '{{ namespace is defined }}{{ dict is defined }}{{ lipsum is defined }}',
]


def render(env, template):
    try:
        text = env.from_string(template).render(**VARIABLES)
        text.encode()  # fails for surrogates
        return text
    except Exception:
        return None


def main():
    env = environment()
    expressions = EXPRESSIONS.replace('\\\n', '\0').split('\n')
    templates = ['{{ ' + e.replace('\0', '\\\n') + ' }}' for e in expressions] + TEMPLATES
    path = os.path.join(HERE, 'jinja.jsonl')
    with open(path, 'w', encoding='utf-8', newline='\n') as file:
        for row in [VARIABLES] + [[t, render(env, t)] for t in dict.fromkeys(templates)]:
            file.write(json.dumps(row, ensure_ascii=True, separators=(',', ':')) + '\n')
    print(path, os.path.getsize(path), 'bytes')


if __name__ == '__main__':
    main()
