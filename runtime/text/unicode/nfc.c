/*
 * nfc.c - decompose, order the marks, compose: one starter with its marks at a time.
 *
 * A starter (a character of class 0) is buffered together with the marks after it. When the next
 * starter arrives, the marks are sorted, those that compose with the buffered starter are composed,
 * and the rest is written; if no mark is left in between, the two starters may compose (Hangul, and
 * vowels of Indic scripts). Below U+0300 nothing composes or decomposes unless a higher character
 * follows, so runs of such characters are copied.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/unicode/nfc.h"

#include "runtime/text/unicode/combining_marks.h"
#include "runtime/text/unicode/unicode.h"
#include "runtime/base/utf8.h"

enum { FIRST_MARK = 0x300 }; /* no character below is the second of a composition */

typedef struct {
    ft_text *out;
    uint32_t letter; /* buffered */
    bool has_letter;
    ft_mark_run run; /* its marks */
    bool no_memory;
} writer;

static void put(writer *w, uint32_t c)
{
    if (!ft_text_put_char(w->out, c))
        w->no_memory = true;
}

/*
 * Compose the starter with its marks, and keep those that do not compose. A mark is blocked by an
 * earlier remaining mark whose class is as high; after sorting, that is the last remaining one.
 */
static void compose_marks(writer *w)
{
    size_t left = 0;
    ft_mark_run_sort(&w->run);
    for (size_t i = 0; i < w->run.count; i++) {
        uint64_t mark = w->run.mark[i];
        bool blocked = left > 0 && ft_mark_class(w->run.mark[left - 1]) >= ft_mark_class(mark);
        uint32_t both = 0;
        if (w->has_letter && !blocked)
            both = ft_char_compose(w->letter, ft_mark_code(mark));
        if (both != 0)
            w->letter = both;
        else
            w->run.mark[left++] = mark;
    }
    w->run.count = left;
}

/* Write the buffered characters. */
static void flush(writer *w)
{
    if (w->has_letter)
        put(w, w->letter);
    for (size_t i = 0; i < w->run.count; i++)
        put(w, ft_mark_code(w->run.mark[i]));
    w->run.count = 0;
    w->has_letter = false;
}

static void add_letter(writer *w, uint32_t c)
{
    uint32_t both = 0;
    compose_marks(w);
    if (w->has_letter && w->run.count == 0)
        both = ft_char_compose(w->letter, c);
    if (both == 0)
        flush(w);
    w->letter = both == 0 ? c : both;
    w->has_letter = true;
}

static void add(writer *w, uint32_t c)
{
    uint32_t part[FT_CHAR_DECOMPOSED];
    int count = ft_char_decompose(c, part);
    for (int i = 0; i < count; i++) {
        uint8_t combining_class = ft_char_combining_class(part[i]);
        if (combining_class == 0)
            add_letter(w, part[i]);
        else if (!ft_mark_run_add(&w->run, part[i], combining_class))
            w->no_memory = true;
    }
}

/*
 * The end of the run of characters below FIRST_MARK, without the last one, with which something may
 * compose.
 */
static const char *end_of_plain(const char *text, const char *end)
{
    const char *last = text, *next = text;
    while (next < end && ft_utf8_next(&next) < FIRST_MARK) {
        last = text;
        text = next;
    }
    return next == end && text == end ? end : last;
}

bool ft_nfc(const char *text, size_t bytes, ft_text *out)
{
    writer w = { .out = out };
    const char *end = text + bytes;
    if (!ft_text_reserve(out, bytes + 4))
        return false;
    while (text < end && !w.no_memory) {
        const char *plain = end_of_plain(text, end);
        if (plain > text) {
            compose_marks(&w);
            flush(&w);
            w.no_memory |= !ft_text_put(out, text, (size_t) (plain - text));
            text = plain;
        }
        if (text < end)
            add(&w, ft_utf8_next(&text));
    }
    compose_marks(&w);
    flush(&w);
    ft_mark_run_fini(&w.run);
    return !w.no_memory;
}
