/*
 * tokenizer_tables.c - locate the tables of a tokenizer.json by brackets and quotes only.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/tables/vocabulary_json.h"

#include <string.h>

typedef struct {
    const char *at, *end;
} cursor;

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static char skip_spaces(cursor *g)
{
    while (g->at < g->end && is_space(*g->at))
        g->at++;
    return g->at < g->end ? *g->at : '\0';
}

/* Skip the string that starts here. */
static void skip_string(cursor *g)
{
    for (g->at++; g->at < g->end && *g->at != '"'; g->at++)
        if (*g->at == '\\')
            g->at++;
    g->at = g->at < g->end ? g->at + 1 : g->end;
}

/* Skip the value that starts here. */
static void skip_value(cursor *g)
{
    int depth = 0;
    while (g->at < g->end) {
        char c = *g->at;
        if (depth == 0 && (c == ',' || c == '}' || c == ']'))
            return;
        if (c == '"') {
            skip_string(g);
            continue;
        }
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        g->at++;
        if (depth == 0 && (c == '}' || c == ']'))
            return;
    }
}

/*
 * Move to the value of the member `key` of the object that starts here; false when there is none.
 */
static bool find_member(cursor *g, const char *key)
{
    size_t bytes = strlen(key);
    if (skip_spaces(g) != '{')
        return false;
    do {
        g->at++;
        if (skip_spaces(g) != '"')
            return false;
        const char *name = g->at + 1;
        skip_string(g);
        bool found = (size_t) (g->at - name) == bytes + 1 && memcmp(name, key, bytes) == 0;
        if (skip_spaces(g) != ':')
            return false;
        g->at++;
        skip_spaces(g);
        if (found)
            return true;
        skip_value(g);
    } while (skip_spaces(g) == ',');
    return false;
}

/* The member `key` of the model that starts at `model`, if it is an object or an array. */
static ft_json_span find_table(const ft_tokenizer_tables *tables, cursor model, const char *key)
{
    if (!find_member(&model, key))
        return (ft_json_span){ 0 };
    char open = skip_spaces(&model);
    if (open != '{' && open != '[')
        return (ft_json_span){ 0 };
    size_t start = (size_t) (model.at - tables->json);
    skip_value(&model);
    return (ft_json_span){ start, (size_t) (model.at - tables->json) };
}

void ft_tokenizer_tables_find(ft_tokenizer_tables *tables)
{
    cursor model = { tables->json, tables->json + tables->bytes };
    if (!find_member(&model, "model"))
        return;
    tables->vocab = find_table(tables, model, "vocab");
    tables->merges = find_table(tables, model, "merges");
}

/* ---- The rest ----------------------------------------------------------------------------- */

/* The tables in the order of the text. */
static void sort_tables(const ft_tokenizer_tables *tables, ft_json_span span[2])
{
    bool vocab_first = tables->vocab.start < tables->merges.start;
    span[0] = vocab_first ? tables->vocab : tables->merges;
    span[1] = vocab_first ? tables->merges : tables->vocab;
}

bool ft_tokenizer_tables_strip(const ft_tokenizer_tables *tables, ft_strbuf *rest)
{
    ft_json_span span[2];
    size_t at = 0;
    sort_tables(tables, span);
    for (int i = 0; i < 2; i++) {
        if (span[i].end == 0)
            continue;
        const char *empty = tables->json[span[i].start] == '{' ? "{}" : "[]";
        if (!ft_strbuf_append(rest, tables->json + at, span[i].start - at) ||
            !ft_strbuf_append(rest, empty, 2))
            return false;
        at = span[i].end;
    }
    return ft_strbuf_append(rest, tables->json + at, tables->bytes - at);
}

void ft_tokenizer_tables_line_column(const ft_tokenizer_tables *tables, size_t at, int *line,
                                     int *column)
{
    ft_json_span span[2];
    sort_tables(tables, span);
    for (int i = 0; i < 2; i++)
        if (span[i].end > 0 && at > span[i].start + 1)
            at += span[i].end - span[i].start - 2;
    *line = *column = 1;
    for (size_t i = 0; i < at && i < tables->bytes; i++) {
        bool ends = tables->json[i] == '\n';
        *line += ends;
        *column = ends ? 1 : *column + 1;
    }
}
