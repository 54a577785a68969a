/*
 * jinja-t.c - templates render as jinja2 renders them for transformers, or are refused.
 *
 * golden/make-jinja.py generates the data: a template per construct, most of one line.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/text/jinja/jinja.h"
#include "runtime/text/jinja/values/arena.h"
#include "tests/lib/folder.h"
#include "tests/lib/golden_rows.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_VARIABLES = 64 };

typedef struct {
    ft_jinja_variable list[MAX_VARIABLES];
    size_t count;
} variables;

static variables variables_of(json_t *object, bool message)
{
    variables v = { .count = 0 };
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value) if (v.count < MAX_VARIABLES) v.list[v.count++] =
        (ft_jinja_variable){ name, value, message };
    return v;
}

/* 2026-11-20 12:00 in local time. */
static int64_t date(void)
{
    struct tm noon = { .tm_year = 126, .tm_mon = 10, .tm_mday = 20, .tm_hour = 12, .tm_isdst = -1 };
    return (int64_t) mktime(&noon);
}

static ft_status render(const char *template, size_t bytes, const variables *v,
                        ft_jinja_output *out, ft_error *err)
{
    ft_jinja_template *parsed;
    *out = (ft_jinja_output){ 0 };
    ft_status status = ft_jinja_parse(&parsed, "t.jinja", template, bytes, err);
    if (status == FT_OK)
        status = ft_jinja_render(parsed, v->list, v->count, date(), out, err);
    ft_jinja_free(parsed);
    return status;
}

/* ---- As jinja2 ---------------------------------------------------------------------------- */

static bool is_rendered(const json_t *row, const variables *v)
{
    const json_t *template = json_array_get(row, 0), *expected = json_array_get(row, 1);
    ft_jinja_output out;
    ft_error err = { .code = FT_OK };
    ft_status status =
        render(json_string_value(template), json_string_length(template), v, &out, &err);
    bool equal = json_is_null(expected)
                     ? status != FT_OK
                     : status == FT_OK && out.bytes == json_string_length(expected) &&
                           memcmp(out.text, json_string_value(expected), out.bytes) == 0;
    if (!equal)
        diag("%s\nfound \"%.*s\"%s, expected \"%s\"", json_string_value(template), (int) out.bytes,
             out.text == NULL ? "" : out.text, err.text, json_string_value(expected));
    free(out.text);
    return equal;
}

static void test_golden(void)
{
    FILE *file = open_golden("tests/golden/jinja.jsonl");
    json_t *object = read_row(file);
    variables v = variables_of(object, false);
    int rows[2] = { 0 }, equal[2] = { 0 };
    for (json_t *row; (row = read_row(file)) != NULL; json_decref(row)) {
        bool refused = json_is_null(json_array_get(row, 1));
        rows[refused]++;
        equal[refused] += is_rendered(row, &v);
    }
    ok(rows[0] > 500 && equal[0] == rows[0],
       "%d of %d templates with one construct each render as jinja2 renders them", equal[0],
       rows[0]);
    ok(rows[1] > 100 && equal[1] == rows[1], "%d of %d templates that jinja2 refuses are refused",
       equal[1], rows[1]);
    json_decref(object);
    fclose(file);
}

/* ---- Published templates ------------------------------------------------------------------ */

/* A file of the folder of published templates, or NULL; free() it. */
static char *read_published(const char *name, size_t *bytes)
{
    char path[1200];
    const char *folder = getenv("FT_CHAT_TEMPLATES");
    snprintf(path, sizeof path, "%s/%s",
             folder == NULL ? source_path("../shared/chat-templates") : folder, name);
    return access(path, R_OK) == 0 ? (char *) folder_read(path, bytes) : NULL;
}

static int count_rendered(const char *template, size_t bytes, const json_t *cases)
{
    int rendered = 0;
    for (size_t i = 0; i < json_array_size(cases); i++) {
        json_t *one = json_array_get(cases, i), *text = json_object_get(one, "expected");
        json_t *bos = json_string("<s>"), *eos = json_string("</s>"), *none = json_null();
        const variables v = { { { "messages", json_object_get(one, "messages"), true },
                                { "add_generation_prompt",
                                  json_object_get(one, "add_generation_prompt"), false },
                                { "bos_token", bos, false },
                                { "eos_token", eos, false },
                                { "tools", none, false },
                                { "documents", none, false } },
                              6 };
        json_t *row = json_array();
        json_array_append_new(row, json_stringn(template, bytes));
        json_array_append_new(row, text == NULL ? json_null() : json_incref(text));
        rendered += is_rendered(row, &v);
        json_decref(row);
        json_decref(bos);
        json_decref(eos);
    }
    return rendered;
}

static void test_published(void)
{
    static const char *const names[] = {
        "Apertus-8B-Instruct",
        "Bielik-11B-v3.0-Instruct",
        "ByteDance-Seed-OSS",
        "GLM-4.6",
        "GigaChat3-10B-A1.8B",
        "HuggingFaceTB-SmolLM3-3B",
        "LFM2-8B-A1B",
        "Mistral-Small-3.2-24B-Instruct-2506",
        "NousResearch-Hermes-3-Llama-3.1-8B-tool_use",
        "Qwen-Qwen2.5-7B-Instruct",
        "Qwen-Qwen3-0.6B",
        "deepseek-ai-DeepSeek-R1-Distill-Llama-8B",
        "google-gemma-2-2b-it",
        "ibm-granite-granite-3.3-2B-Instruct",
        "llama-cpp-rwkv-world",
        "meta-llama-Llama-3.1-8B-Instruct",
        "meta-llama-Llama-3.2-3B-Instruct",
        "microsoft-Phi-3.5-mini-instruct",
        "mistralai-Mistral-Nemo-Instruct-2407",
        "openai-gpt-oss-120b",
    };
    for (size_t i = 0; i < FT_COUNT(names); i++) {
        char file[128];
        size_t template_bytes = 0, bytes = 0;
        snprintf(file, sizeof file, "%s.jinja", names[i]);
        char *template = read_published(file, &template_bytes);
        snprintf(file, sizeof file, "%s.json", names[i]);
        char *text = read_published(file, &bytes);
        if (template == NULL || text == NULL) {
            skip(1, "the template of %s is not in $FT_CHAT_TEMPLATES", names[i]);
        } else {
            json_t *cases = json_loadb(text, bytes, 0, NULL);
            int count = (int) json_array_size(cases);
            is_int(count_rendered(template, template_bytes, cases), count,
                   "the published template of %s renders or refuses each of its %d cases as jinja2",
                   names[i], count);
            json_decref(cases);
        }
        free(template);
        free(text);
    }
}

/* ---- Origins ------------------------------------------------------------------------------ */

/* 'm' for each byte of a message, '.' for each of the template. */
static void has_origins(const char *template, const char *text, const char *origins)
{
    static const char json[] = "{\"c\": \"ab\", \"e\": \"\\n\\u00e9'\", \"l\": [\"x\", \"y\"],"
                               " \"m\": {\"role\": \"user\", \"k\": \"v\"}, \"n\": 12,"
                               " \"w\": {\"role\": \"<|x|>\"}, \"p\": \"%s-%s\", \"a\": \"A a\"}";
    json_t *object = json_loads(json, 0, NULL);
    const variables v = variables_of(object, true);
    ft_jinja_output out;
    ft_error err;
    char found[256] = "";
    if (render(template, strlen(template), &v, &out, &err) != FT_OK)
        bail_out("%s", err.text);
    for (size_t i = 0; i < out.bytes && i < sizeof found - 1; i++)
        found[i] = out.message[i] ? 'm' : '.';
    ok(out.bytes == strlen(text) && memcmp(out.text, text, out.bytes) == 0 &&
           strcmp(found, origins) == 0,
       "%s knows which bytes come from messages", template);
    if (strcmp(found, origins) != 0)
        diag("found %.*s %s, expected %s %s", (int) out.bytes, out.text, found, text, origins);
    free(out.text);
    json_decref(object);
}

static void test_origins(void)
{
    has_origins("<{{ c }}>", "<ab>", ".mm.");
    has_origins("{{ '<' + c + '>' }}", "<ab>", ".mm.");
    has_origins("{{ '<' ~ c ~ n ~ '>' }}", "<ab12>", ".mm...");
    has_origins("{{ ('<' + c + '>')[1:3] }}", "ab", "mm");
    has_origins("{{ ('<' + c + '>')[::-1] }}", ">ba<", ".mm.");
    has_origins("{{ ('<' + c + '>')|upper }}", "<AB>", ".mm.");
    has_origins("{{ (' ' + c + ' x ')|trim }}", "ab x", "mm..");
    has_origins("{{ ('-' + c + '-').strip('-a') }}", "b", "m");
    has_origins("{{ c|replace('a', 'xy') }}", "xyb", "..m");
    has_origins("{{ 'axb'|replace('x', c) }}", "aabb", ".mm.");
    has_origins("{{ ('1' + c + '2').split('a')|join('|') }}", "1|b2", "..m.");
    has_origins("{{ l|join(',') }}", "x,y", "m.m");
    has_origins("{{ c.join(['1', '2']) }}", "1ab2", ".mm.");
    has_origins("{{ l }}", "['x', 'y']", "..m....m..");
    has_origins("{{ m|tojson }}", "{\"role\": \"user\", \"k\": \"v\"}",
                "..mmmm............m....m..");
    has_origins("{{ e|tojson }}", "\"\\n\xc3\xa9'\"", ".mmmmm.");
    has_origins("{{ [e] }}", "[\"\\n\xc3\xa9'\"]", "..mmmmm..");
    has_origins("{{ '%s=%s' % (c, 1) }}", "ab=1", "mm..");
    has_origins("{{ p % ('1', '2') }}", "1-2", ".m.");
    has_origins("{{ '<|' + m.role + '|>' }}", "<|user|>", "........");
    has_origins("{{ '<|' + w.role + '|>' }}", "<|<|x|>|>", "..mmmmm..");
    has_origins("{% for k, v in m.items() %}{{ k }}={{ v }};{% endfor %}", "role=user;k=v;",
                "mmmm......m.m.");
    has_origins("{% for x in c %}[{{ x }}]{% endfor %}", "[a][b]", ".m..m.");
    has_origins("{% set x %}<{{ c }}>{% endset %}{{ x }}", "<ab>", ".mm.");
    has_origins("{% macro f(x) %}<{{ x }}>{% endmacro %}{{ f(c) }}", "<ab>", ".mm.");
    has_origins("{% set ns = namespace(x='<') %}{% set ns.x = ns.x + c %}{{ ns.x }}", "<ab", ".mm");
    has_origins("{{ c|indent(1, true) }}", " ab", ".mm");
    has_origins("{{ a|title }}{{ a.swapcase() }}", "A Aa A", "mmmmmm");
    has_origins("{{ ('<' + c)|list|last }}{{ ('<' + c)|first }}", "b<", "m.");
    has_origins("{{ strftime_now(c) }}", "ab", "mm");
}

/* ---- Refused ------------------------------------------------------------------------------ */

/* Up to 60 bytes of a text, on one line. */
static const char *one_line(const char *text)
{
    static char line[61];
    size_t i = 0;
    for (; i < sizeof line - 1 && text[i] != '\0'; i++)
        line[i] = text[i] == '\n' || text[i] == '\xff' ? ' ' : text[i];
    line[i] = '\0';
    return line;
}

static void is_refused(const char *template, ft_status status, const char *says)
{
    const variables none = { .count = 0 };
    ft_jinja_output out;
    ft_error err = { .code = FT_OK };
    is_int(render(template, strlen(template), &none, &out, &err), status,
           "%s is refused with the status that fits", one_line(template));
    has(err.text, says, "the message about %s says %s", one_line(template), says);
    free(out.text);
}

static void test_refused(void)
{
    is_refused("a\n\n{{ x|nope }}", FT_EUNSUPPORTED,
               "t.jinja: line 3: found the filter \"nope\", which is not supported");
    is_refused("{% if false %}{{ x|escape }}{% endif %}", FT_EUNSUPPORTED, "the filter \"escape\"");
    is_refused("{{ x|map('urlize') }}", FT_EUNSUPPORTED, "the filter \"urlize\"");
    is_refused("{{ x|select('nope') }}", FT_EUNSUPPORTED, "the test \"nope\"");
    is_refused("{{ x|selectattr('y', 'nope') }}", FT_EUNSUPPORTED, "the test \"nope\"");
    is_refused("{{ x is nope }}", FT_EUNSUPPORTED, "the test \"nope\"");
    is_refused("{% if false %}\n{{ x.encode() }}{% endif %}", FT_EUNSUPPORTED,
               "line 2: found the method \"encode\"");
    is_refused("{{ ('a'|safe) + '<' }}", FT_EUNSUPPORTED, "the filter \"safe\"");
    is_refused("{{ ('a'|safe)|safe }}", FT_EUNSUPPORTED, "the filter \"safe\"");
    is_refused("{% if 'a'|safe %}{% endif %}", FT_EUNSUPPORTED, "the filter \"safe\"");
    is_refused("{% include 'x' %}", FT_EUNSUPPORTED, "the statement \"include\"");
    is_refused("{% for x in y recursive %}{% endfor %}", FT_EUNSUPPORTED, "\"recursive\"");
    is_refused("{% macro m() %}{{ varargs }}{% endmacro %}", FT_EUNSUPPORTED, "\"varargs\"");
    is_refused("{{ f(*x) }}", FT_EUNSUPPORTED, "the argument \"*\"");
    is_refused("{{ cycler('a') }}", FT_EUNSUPPORTED, "the function \"cycler\"");
    is_refused("{{ range(3) }}", FT_EUNSUPPORTED, "make it a list first");
    is_refused("{{ 'a'|map }}", FT_EFORMAT, "map: needs a filter or an attribute");
    is_refused("{% if x %}", FT_EFORMAT, "found the end of the template, expected elif");
    is_refused("a\n{{ x", FT_EFORMAT, "line 2: a tag has no end, expected }}");
    is_refused("{{ raise_exception('no') }}", FT_EARG,
               "line 1: the template refuses these messages: no");
    is_refused("\n{{ x.y }}", FT_EFORMAT, "line 2: 'x' is undefined");
    is_refused("{{ 'a' + 1 }}", FT_EFORMAT, "unsupported operand types for +: 'str' and 'int'");
    is_refused("{{ 9223372036854775807 + 1 }}", FT_ELIMIT, "does not fit 64 bits");
    is_refused("{{ 9223372036854775808 }}", FT_EFORMAT, "is no integer of 64 bits");
    is_refused("\xff", FT_EFORMAT, "t.jinja: byte 0 is 0xff, expected valid UTF-8");
}

/* ---- Limits ------------------------------------------------------------------------------- */

/* A template of a part that is repeated. */
static void repeated_is_refused(const char *part, size_t times, const char *says)
{
    size_t bytes = strlen(part);
    char *text = calloc(times, bytes + 1);
    const variables none = { .count = 0 };
    ft_jinja_output out;
    ft_error err = { .code = FT_OK };
    if (text == NULL)
        bail_out("no memory");
    for (size_t i = 0; i < times; i++)
        memcpy(text + i * bytes, part, bytes);
    is_int(render(text, times * bytes, &none, &out, &err), FT_ELIMIT,
           "%s %zu times in a row is too much", part, times);
    has(err.text, says, "the message about many %s says %s", part, says);
    free(out.text);
    free(text);
}

static void test_limits(void)
{
    is_refused("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
               FT_ELIMIT, "the template needs more than");
    is_refused("{% set n = namespace(s='xx') %}{% for i in range(90) %}{% set n.s = n.s + n.s %}"
               "{% endfor %}",
               FT_ELIMIT, "a text has more than 8388608 bytes");
    is_refused("{% set n = namespace(l=[1]) %}{% for i in range(90) %}{% set n.l = n.l + n.l %}"
               "{% endfor %}",
               FT_ELIMIT, "the template needs more than");
    is_refused("{{ [1] * 9223372036854775807 }}", FT_ELIMIT, "too many steps");
    is_refused("{{ '%99999s' % 'x' }}", FT_ELIMIT, "a width above 10000");
    is_refused("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", FT_ELIMIT,
               "nested more than 400 levels deep");
    is_refused("{% set n = namespace(l=[]) %}{% for i in range(999) %}{% set n.l = [n.l] %}"
               "{% endfor %}{{ n.l }}",
               FT_ELIMIT, "nested more than 400 levels deep");
    is_refused("{{ range(100001) }}", FT_ELIMIT, "range() has more than 100000 numbers");
    repeated_is_refused("{{ (((((((((", 60, "more than 400 brackets are open");
    repeated_is_refused("{% if 1 %}", 1000, "nested more than 400 levels deep");
    repeated_is_refused("xxxxxxxxxxxxxxxx", 1 << 17, "expected at most 1048576");
}

/* Chunks are larger than what is left of the limit. */
static void test_memory_limit(void)
{
    enum { LIMIT = 20000, BYTES = 16, TRIES = 10000 };
    ft_jinja_arena arena = { .limit = LIMIT };
    size_t served = 0;
    while (served < TRIES && ft_jinja_arena_alloc(&arena, BYTES) != NULL)
        served++;
    is_int((long long) served, LIMIT / BYTES, "an arena serves no more bytes than its limit");
    ft_jinja_arena_fini(&arena);
}

int main(void)
{
    test_memory_limit();
    test_golden();
    test_published();
    test_origins();
    test_refused();
    test_limits();
    return done_testing();
}
