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
    ft_strbuf *out;
    uint32_t starter; /* buffered */
    bool has_starter;
    ft_combining_sequence marks; /* its marks */
    bool out_of_memory;
} composer;

static void emit(composer *w, uint32_t c)
{
    if (!ft_strbuf_append_char(w->out, c))
        w->out_of_memory = true;
}

/*
 * Compose the starter with its marks, and keep those that do not compose. A mark is blocked by an
 * earlier remaining mark whose class is as high; after sorting, that is the last remaining one.
 */
static void compose_marks(composer *w)
{
    size_t n_left = 0;
    ft_combining_sequence_sort(&w->marks);
    for (size_t i = 0; i < w->marks.count; i++) {
        uint64_t mark = w->marks.mark[i];
        bool blocked = n_left > 0 && ft_combining_mark_class(w->marks.mark[n_left - 1]) >=
                                         ft_combining_mark_class(mark);
        uint32_t composed = 0;
        if (w->has_starter && !blocked)
            composed = ft_char_compose(w->starter, ft_combining_mark_code(mark));
        if (composed != 0)
            w->starter = composed;
        else
            w->marks.mark[n_left++] = mark;
    }
    w->marks.count = n_left;
}

/* Write the buffered characters. */
static void flush(composer *w)
{
    if (w->has_starter)
        emit(w, w->starter);
    for (size_t i = 0; i < w->marks.count; i++)
        emit(w, ft_combining_mark_code(w->marks.mark[i]));
    w->marks.count = 0;
    w->has_starter = false;
}

static void add_starter(composer *w, uint32_t c)
{
    uint32_t composed = 0;
    compose_marks(w);
    if (w->has_starter && w->marks.count == 0)
        composed = ft_char_compose(w->starter, c);
    if (composed == 0)
        flush(w);
    w->starter = composed == 0 ? c : composed;
    w->has_starter = true;
}

static void add(composer *w, uint32_t c)
{
    uint32_t part[FT_CHAR_MAX_DECOMPOSED];
    int count = ft_char_decompose(c, part);
    for (int i = 0; i < count; i++) {
        uint8_t combining_class = ft_char_combining_class(part[i]);
        if (combining_class == 0)
            add_starter(w, part[i]);
        else if (!ft_combining_sequence_add(&w->marks, part[i], combining_class))
            w->out_of_memory = true;
    }
}

/*
 * The end of the run of characters below FIRST_MARK, without the last one, with which something may
 * compose.
 */
static const char *end_of_inert(const char *text, const char *end)
{
    const char *last = text, *next = text;
    while (next < end && ft_utf8_decode_next(&next) < FIRST_MARK) {
        last = text;
        text = next;
    }
    return next == end && text == end ? end : last;
}

bool ft_normalize_nfc(const char *text, size_t bytes, ft_strbuf *out)
{
    composer w = { .out = out };
    const char *end = text + bytes;
    if (!ft_strbuf_reserve(out, bytes + 4))
        return false;
    while (text < end && !w.out_of_memory) {
        const char *inert = end_of_inert(text, end);
        if (inert > text) {
            compose_marks(&w);
            flush(&w);
            w.out_of_memory |= !ft_strbuf_append(out, text, (size_t) (inert - text));
            text = inert;
        }
        if (text < end)
            add(&w, ft_utf8_decode_next(&text));
    }
    compose_marks(&w);
    flush(&w);
    ft_combining_sequence_fini(&w.marks);
    return !w.out_of_memory;
}
