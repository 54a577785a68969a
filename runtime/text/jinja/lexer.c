/*
 * lexer.c - text, comments, raw blocks and tags, with jinja2's white space control.
 *
 * A minus sign in a tag removes all white space beside it.  Otherwise a block or a comment that is
 * alone on its line removes the line: the white space before it (lstrip_blocks) and the newline
 * after it (trim_blocks).  A plus sign keeps them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/lexer.h"

#include "runtime/base/utf8.h"
#include "runtime/mem.h"

#include <string.h>

typedef struct {
    ft_jinja_run *run;
    const char *text;
    size_t bytes, at;
    bool line_starts; /* the last tag ended a line, or nothing came before */
    ft_jinja_token_list tokens;
} lexer;

/* ---- Text --------------------------------------------------------------------------------- */

static bool starts_with(const lexer *l, size_t at, const char *text)
{
    size_t bytes = strlen(text);
    return bytes <= l->bytes - at && memcmp(l->text + at, text, bytes) == 0;
}

/* The end of the white space at `at`. */
static size_t skip_space(const lexer *l, size_t at)
{
    while (at < l->bytes) {
        const char *next = l->text + at;
        if (!ft_jinja_is_space(ft_utf8_decode_next(&next)))
            break;
        at = (size_t) (next - l->text);
    }
    return at;
}

/* The start of the white space before `end`, not before `start`. */
static size_t skip_space_back(const lexer *l, size_t start, size_t end)
{
    while (end > start && ft_jinja_is_space(ft_utf8_decode_prev(l->text + end)))
        do
            end--;
        while (ft_utf8_is_continuation(l->text[end]));
    return end;
}

/* Where the text [start, end) before a tag ends: `sign` follows the opening braces. */
static size_t trim_before(const lexer *l, size_t start, size_t end, char sign, bool is_block)
{
    size_t stripped = skip_space_back(l, start, end), line = end;
    if (sign == '-')
        return stripped;
    if (sign == '+' || !is_block)
        return end;
    while (line > start && l->text[line - 1] != '\n')
        line--;
    bool whole_line = line > start || l->line_starts;
    return whole_line && stripped <= line ? line : end;
}

static void add_data(lexer *l, size_t start, size_t end)
{
    if (start < end)
        ft_jinja_add_token(l->run, &l->tokens,
                           (ft_jinja_token){ .kind = FT_JINJA_TOKEN_DATA,
                                             .line = l->run->line,
                                             .text = l->text + start,
                                             .bytes = end - start });
}

/* Move on to `to`, counting lines. */
static void advance(lexer *l, size_t to)
{
    for (; l->at < to; l->at++)
        l->run->line += l->text[l->at] == '\n';
}

/* Move behind the closing tag at `at`, of which `sign` comes first, and what it takes with it. */
static void close_tag(lexer *l, size_t at, bool is_block)
{
    char sign = l->text[at];
    size_t end = at + 2 + (sign == '-' || sign == '+');
    if (sign == '-')
        end = skip_space(l, end);
    else if (is_block && sign != '+' && end < l->bytes && l->text[end] == '\n')
        end++;
    advance(l, end);
    l->line_starts = l->text[end - 1] == '\n';
}

/* ---- Comments and raw blocks -------------------------------------------------------------- */

static void skip_comment(lexer *l, size_t at)
{
    const char *end = memmem(l->text + at, l->bytes - at, "#}", 2);
    if (end == NULL)
        ft_jinja_fail(l->run, FT_EFORMAT, "a comment has no end, expected #}");
    size_t close = (size_t) (end - l->text);
    bool has_sign = close > at && (end[-1] == '-' || end[-1] == '+');
    close_tag(l, close - has_sign, true);
}

/* Where the tag {% NAME %} at `at` closes, its sign included; SIZE_MAX: it is another tag. */
static size_t find_close(const lexer *l, size_t at, const char *name)
{
    at += 2;
    at += at < l->bytes && (l->text[at] == '-' || l->text[at] == '+');
    at = skip_space(l, at);
    if (!starts_with(l, at, name))
        return SIZE_MAX;
    at = skip_space(l, at + strlen(name));
    bool closes =
        starts_with(l, at, "%}") || starts_with(l, at, "-%}") || starts_with(l, at, "+%}");
    return closes ? at : SIZE_MAX;
}

/* Add the text of a raw block, whose opening tag closes at `close`. */
static void lex_raw(lexer *l, size_t close)
{
    if (l->text[close] == '+')
        ft_jinja_fail(l->run, FT_EFORMAT, "found +%%} after raw, expected %%}");
    close_tag(l, close, false);
    size_t start = l->at, at = start, end = SIZE_MAX;
    l->line_starts = false;
    while (end == SIZE_MAX) {
        const char *tag = memmem(l->text + at, l->bytes - at, "{%", 2);
        if (tag == NULL)
            ft_jinja_fail(l->run, FT_EFORMAT, "a raw block has no end, expected endraw");
        at = (size_t) (tag - l->text);
        end = find_close(l, at, "endraw");
        at += 2;
    }
    add_data(l, start, trim_before(l, start, at - 2, l->text[at], true));
    close_tag(l, end, true);
}

/* ---- Tags --------------------------------------------------------------------------------- */

static void add_tag(lexer *l, ft_jinja_token_kind kind)
{
    ft_jinja_add_token(l->run, &l->tokens,
                       (ft_jinja_token){ .kind = kind, .line = l->run->line, .text = "" });
}

static void lex_tag(lexer *l, size_t at, bool is_block)
{
    const char *close = is_block ? "%}" : "}}";
    advance(l, at);
    add_tag(l, is_block ? FT_JINJA_TOKEN_BLOCK : FT_JINJA_TOKEN_OPEN);
    uint32_t line = l->run->line;
    size_t end =
        at + ft_jinja_lex_expression(l->run, l->text + at, l->bytes - at, close, &l->tokens);
    l->run->line = line;
    advance(l, end);
    add_tag(l, FT_JINJA_TOKEN_CLOSE);
    close_tag(l, end, is_block);
}

/* The next opening tag at or after the current place; the end of the template if there is none. */
static size_t find_tag(const lexer *l)
{
    for (size_t at = l->at; at + 1 < l->bytes; at++)
        if (l->text[at] == '{' && strchr("{%#", l->text[at + 1]) != NULL && l->text[at + 1] != '\0')
            return at;
    return l->bytes;
}

static void lex_next(lexer *l)
{
    size_t start = l->at, tag = find_tag(l);
    if (tag == l->bytes) {
        add_data(l, start, tag);
        advance(l, tag);
        return;
    }
    char kind = l->text[tag + 1], sign = tag + 2 < l->bytes ? l->text[tag + 2] : '\0';
    size_t inside = tag + 2 + (sign == '-' || sign == '+');
    size_t raw = kind == '%' ? find_close(l, tag, "raw") : SIZE_MAX;
    add_data(l, start, trim_before(l, start, tag, sign, kind != '{'));
    advance(l, tag);
    if (kind == '#')
        skip_comment(l, inside);
    else if (raw != SIZE_MAX)
        lex_raw(l, raw);
    else
        lex_tag(l, inside, kind == '%');
}

/* jinja2 reads all kinds of newlines as \n, and drops one at the end of the template. */
static const char *normalize_newlines(ft_jinja_run *run, const char *text, size_t bytes,
                                      size_t *out_bytes)
{
    char *out = ft_jinja_alloc(run, bytes, 1);
    size_t count = 0;
    for (size_t i = 0; i < bytes; i++) {
        bool pair = text[i] == '\r' && i + 1 < bytes && text[i + 1] == '\n';
        if (!pair)
            out[count++] = text[i] == '\r' ? '\n' : text[i];
    }
    *out_bytes = count - (count > 0 && out[count - 1] == '\n');
    return out;
}

ft_jinja_token_list ft_jinja_lex(ft_jinja_run *run, const char *text, size_t bytes)
{
    lexer l = { .run = run, .line_starts = true };
    run->line = 1;
    l.text = normalize_newlines(run, text, bytes, &l.bytes);
    while (l.at < l.bytes)
        lex_next(&l);
    add_tag(&l, FT_JINJA_TOKEN_END);
    return l.tokens;
}
