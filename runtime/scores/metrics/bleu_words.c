/*
 * bleu_words.c - 13a replaces escapes, then puts spaces around punctuation in four passes.
 *
 * A pass does not see what it wrote itself, but each sees the output of the one before: "1.,2"
 * depends on that. Between passes the text lies in one of two buffers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/scores/metrics/bleu_words.h"

#include "runtime/scores/metrics/words.h"

#include <string.h>

typedef struct {
    ft_strbuf from, to;
    bool ok;
} passes;

static void put(passes *p, const char *text, size_t bytes)
{
    p->ok = p->ok && ft_strbuf_append(&p->to, text, bytes);
}

static void end_pass(passes *p)
{
    ft_strbuf done = p->to;
    p->to = p->from;
    p->to.bytes = 0;
    p->from = done;
}

static void replace(passes *p, const char *pattern, const char *content)
{
    const char *at = p->from.data, *end = at + p->from.bytes, *found;
    size_t bytes = strlen(pattern);
    while ((found = memmem(at, (size_t) (end - at), pattern, bytes)) != NULL) {
        put(p, at, (size_t) (found - at));
        put(p, content, strlen(content));
        at = found + bytes;
    }
    put(p, at, (size_t) (end - at));
    end_pass(p);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_period(char c)
{
    return c == '.' || c == ',';
}

/* ASCII symbols other than the apostrophe, the comma, the hyphen and the period. */
static bool is_symbol(char c)
{
    return (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') ||
           (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

static void split_symbols(passes *p)
{
    for (size_t i = 0; i < p->from.bytes; i++) {
        char c = p->from.data[i], spaced[3] = { ' ', c, ' ' };
        if (is_symbol(c))
            put(p, spaced, 3);
        else
            put(p, &c, 1);
    }
    end_pass(p);
}

/* The size of the character at `at`. */
static size_t char_bytes(const ft_strbuf *text, size_t at)
{
    const char *start = text->data + at, *next = start;
    (void) ft_utf8_decode_next(&next);
    return (size_t) (next - start);
}

/* A pair of characters is consumed as a whole: the second cannot start another match. */
static void split_after(passes *p, bool (*first)(char), bool negate, bool (*second)(char))
{
    const ft_strbuf *text = &p->from;
    for (size_t i = 0, bytes; i < text->bytes; i += bytes) {
        bytes = char_bytes(text, i);
        put(p, text->data + i, bytes);
        if (i + bytes == text->bytes || first(text->data[i]) == negate ||
            !second(text->data[i + bytes]))
            continue;
        char spaced[3] = { ' ', text->data[i + bytes], ' ' };
        put(p, spaced, 3);
        i++;
    }
    end_pass(p);
}

/* A period or comma before anything but a digit. */
static void split_before(passes *p)
{
    const ft_strbuf *text = &p->from;
    for (size_t i = 0, bytes; i < text->bytes; i += bytes) {
        bytes = char_bytes(text, i);
        if (!is_period(text->data[i]) || i + 1 == text->bytes || is_digit(text->data[i + 1])) {
            put(p, text->data + i, bytes);
            continue;
        }
        char spaced[3] = { ' ', text->data[i], ' ' };
        put(p, spaced, 3);
        bytes = 1 + char_bytes(text, i + 1);
        put(p, text->data + i + 1, bytes - 1);
    }
    end_pass(p);
}

static bool is_hyphen(char c)
{
    return c == '-';
}

/* The text without trailing white space, between two spaces. */
static void start(passes *p, const char *text, size_t bytes)
{
    const char *end = text + bytes;
    while (end > text && ft_is_python_space(ft_utf8_decode_prev(end)))
        do
            end--;
        while (ft_utf8_is_continuation(*end));
    put(p, text, (size_t) (end - text));
    end_pass(p);
}

static void pad(passes *p)
{
    put(p, " ", 1);
    put(p, p->from.data, p->from.bytes);
    put(p, " ", 1);
    end_pass(p);
}

bool ft_bleu_split(const char *text, size_t bytes, ft_strbuf *out)
{
    passes p = { .ok = true };
    start(&p, text, bytes);
    if (p.from.bytes > 0) {
        replace(&p, "<skipped>", "");
        replace(&p, "-\n", "");
        replace(&p, "\n", " ");
        replace(&p, "&quot;", "\"");
        replace(&p, "&amp;", "&");
        replace(&p, "&lt;", "<");
        replace(&p, "&gt;", ">");
    }
    pad(&p);
    split_symbols(&p);
    split_after(&p, is_digit, true, is_period);
    split_before(&p);
    split_after(&p, is_digit, false, is_hyphen);
    ft_strbuf_fini(out);
    *out = p.from;
    ft_strbuf_fini(&p.to);
    return p.ok;
}
