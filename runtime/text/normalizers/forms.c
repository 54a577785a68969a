/*
 * forms.c - decompose, order the marks, compose: one starter with its marks at a time.
 *
 * A starter (a character of class 0) is buffered together with the marks after it. When the next
 * starter arrives, the marks are sorted, those that compose with the buffered starter are composed,
 * and the rest is written; if no mark is left in between, the two starters may compose (Hangul, and
 * vowels of Indic scripts). Characters below the first that a form changes are copied in runs.
 *
 * Each character carries its change: 0 if it replaces a character of the input, 1 if it was
 * inserted by a decomposition, and -n if it also stands for the n characters after it, which
 * composed with it. Sources follow from the changes in the order of the output.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/normalizers/forms.h"

#include "runtime/text/unicode/combining_marks.h"
#include "runtime/text/unicode/unicode.h"

enum {
    FIRST_MARK = 0x300,        /* no character below is the second of a composition */
    FIRST_DECOMPOSABLE = 0xc0, /* no character below decomposes */
    FIRST_COMPATIBLE = 0xa0,   /* no character below has a compatible decomposition */
};

typedef struct {
    ft_normal_form form;
    ft_transform transform;
    uint32_t starter; /* buffered */
    int change;       /* of the starter */
    bool has_starter;
    ft_combining_sequence marks; /* its marks */
    bool out_of_memory;
} composer;

static void emit(composer *w, uint32_t c, int change)
{
    if (change > 0)
        ft_transform_insert(&w->transform, c);
    else
        ft_transform_replace(&w->transform, c);
    if (change < 0)
        ft_transform_skip(&w->transform, (size_t) -change);
}

/*
 * Compose the starter with its marks, and keep those that do not compose. A mark is blocked by an
 * earlier remaining mark whose class is as high; after sorting, that is the last remaining one.
 */
static void compose_marks(composer *w)
{
    size_t n_left = 0;
    ft_combining_sequence_sort(&w->marks);
    if (!w->form.composed)
        return;
    for (size_t i = 0; i < w->marks.count; i++) {
        uint64_t mark = w->marks.mark[i];
        bool blocked = n_left > 0 && ft_combining_mark_class(w->marks.mark[n_left - 1]) >=
                                         ft_combining_mark_class(mark);
        uint32_t composed = 0;
        if (w->has_starter && !blocked)
            composed = ft_char_compose(w->starter, ft_combining_mark_code(mark));
        if (composed == 0) {
            w->marks.mark[n_left++] = mark;
            continue;
        }
        w->starter = composed;
        w->change += (int) ft_combining_mark_is_inserted(mark) - 1;
    }
    w->marks.count = n_left;
}

/* Write the buffered characters. */
static void flush(composer *w)
{
    if (w->has_starter)
        emit(w, w->starter, w->change);
    for (size_t i = 0; i < w->marks.count; i++)
        emit(w, ft_combining_mark_code(w->marks.mark[i]),
             ft_combining_mark_is_inserted(w->marks.mark[i]));
    w->marks.count = 0;
    w->has_starter = false;
}

static void add_starter(composer *w, uint32_t c, int change)
{
    uint32_t composed = 0;
    compose_marks(w);
    if (w->form.composed && w->has_starter && w->marks.count == 0)
        composed = ft_char_compose(w->starter, c);
    if (composed != 0) {
        w->starter = composed;
        w->change += change - 1;
        return;
    }
    flush(w);
    w->starter = c;
    w->change = change;
    w->has_starter = true;
}

static void add(composer *w, uint32_t c)
{
    uint32_t part[FT_CHAR_MAX_COMPATIBLE];
    int count =
        w->form.compatible ? ft_char_decompose_compatible(c, part) : ft_char_decompose(c, part);
    for (int i = 0; i < count; i++) {
        uint8_t combining_class = ft_char_combining_class(part[i]);
        if (combining_class == 0)
            add_starter(w, part[i], i > 0);
        else if (!ft_combining_sequence_add(&w->marks, part[i], combining_class, i > 0))
            w->out_of_memory = true;
    }
}

/* The first character that is not copied as it is. */
static uint32_t first_changed(ft_normal_form form)
{
    if (form.compatible)
        return FIRST_COMPATIBLE;
    return form.composed ? FIRST_MARK : FIRST_DECOMPOSABLE;
}

/*
 * The end of the run of characters below `limit`, without the last one if something may compose
 * with it.
 */
static const char *end_of_inert(const char *text, const char *end, uint32_t limit)
{
    const char *last = text, *next = text;
    while (next < end && ft_utf8_decode_next(&next) < limit) {
        last = text;
        text = next;
    }
    return next == end && text == end ? end : last;
}

/* Copy characters of the input, which nothing buffered composes with. */
static void copy(composer *w, size_t end)
{
    ft_transform *t = &w->transform;
    compose_marks(w);
    flush(w);
    t->failed = t->failed || !ft_aligned_buf_copy(t->out, t->in, t->at, end);
    t->at = end;
}

bool ft_normalize_form(ft_normal_form form, const ft_aligned_text *in, ft_aligned_buf *out)
{
    composer w = { .form = form, .transform = { .in = in, .out = out } };
    const char *next = in->text, *end = in->text + in->bytes;
    uint32_t limit = first_changed(form);
    if (!ft_strbuf_reserve(&out->text, in->bytes))
        return false;
    while (next < end && !w.out_of_memory && !w.transform.failed) {
        const char *inert = end_of_inert(next, end, limit);
        if (inert > next) {
            copy(&w, (size_t) (inert - in->text));
            next = inert;
        }
        if (next < end)
            add(&w, ft_utf8_decode_next(&next));
    }
    compose_marks(&w);
    flush(&w);
    ft_combining_sequence_fini(&w.marks);
    return !w.out_of_memory && !w.transform.failed;
}
