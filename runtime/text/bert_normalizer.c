/*
 * bert_normalizer.c - clean, space out ideographs, strip accents, lowercase: in one pass.
 *
 * Each step is a function that passes its characters to the next one, so the text is read and
 * written once. Only the canonical ordering of combining marks needs lookahead: a run of marks is
 * buffered until a character of combining class 0 arrives. Nonspacing marks are removed before
 * that, so hardly any text ever buffers a run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/bert_normalizer.h"

#include "runtime/text/unicode/combining_marks.h"
#include "runtime/text/unicode/unicode.h"
#include "runtime/base/utf8.h"

typedef struct {
    const ft_bert_normalizer *steps;
    ft_text *out;
    ft_mark_run run; /* buffered marks */
    bool no_memory;  /* once true, output is discarded */
} writer;

/* ------------------------------------------------------------------------------------------ */

static void put(writer *w, uint32_t c)
{
    if (!ft_text_put_char(w->out, c))
        w->no_memory = true;
}

static void put_lowercase(writer *w, uint32_t c)
{
    uint32_t lower[FT_CHAR_LOWERED];
    int count = ft_char_lower(c, lower);
    for (int i = 0; i < count; i++)
        put(w, lower[i]);
}

static void put_cased(writer *w, uint32_t c)
{
    if (w->steps->lowercase)
        put_lowercase(w, c);
    else
        put(w, c);
}

/* ------------------------------------------------------------------------------------------ */

/* Output the buffered marks. */
static void end_run(writer *w)
{
    ft_mark_run_sort(&w->run);
    for (size_t i = 0; i < w->run.count; i++)
        put_cased(w, ft_mark_code(w->run.mark[i]));
    w->run.count = 0;
}

static void add_to_run(writer *w, uint32_t c, uint8_t combining_class)
{
    if (!ft_mark_run_add(&w->run, c, combining_class))
        w->no_memory = true;
}

static void put_without_accents(writer *w, uint32_t c)
{
    uint32_t part[FT_CHAR_DECOMPOSED];
    int count = ft_char_decompose(c, part);
    for (int i = 0; i < count; i++) {
        uint8_t combining_class = ft_char_combining_class(part[i]);
        if (combining_class == 0)
            end_run(w);
        if (ft_char_is_mark(part[i]))
            continue;
        if (combining_class == 0)
            put_cased(w, part[i]);
        else
            add_to_run(w, part[i], combining_class);
    }
}

static void put_stripped(writer *w, uint32_t c)
{
    if (w->steps->strip_accents)
        put_without_accents(w, c);
    else
        put_cased(w, c);
}

static void put_spaced(writer *w, uint32_t c)
{
    bool alone = w->steps->handle_chinese_chars && ft_char_is_ideograph(c);
    if (alone)
        put_stripped(w, ' ');
    put_stripped(w, c);
    if (alone)
        put_stripped(w, ' ');
}

static void put_cleaned(writer *w, uint32_t c)
{
    if (!w->steps->clean_text)
        put_spaced(w, c);
    else if (c == '\t' || c == '\n' || c == '\r')
        put_spaced(w, ' ');
    else if (c != 0xfffd && !ft_char_is_control(c))
        put_spaced(w, ft_char_is_space(c) ? ' ' : c);
}

/* emit_cleaned() specialized for ASCII, which most text is. */
static void put_cleaned_ascii(writer *w, unsigned char c)
{
    if (w->steps->clean_text) {
        if (c == '\t' || c == '\n' || c == '\r')
            c = ' ';
        else if (c < ' ' || c == 0x7f)
            return;
    }
    if (w->steps->lowercase && c >= 'A' && c <= 'Z')
        c = (unsigned char) (c - 'A' + 'a');
    if (w->run.count > 0)
        end_run(w);
    put(w, c);
}

ft_status ft_bert_normalize(const ft_bert_normalizer *normalizer, const char *text, size_t bytes,
                            ft_text *out)
{
    writer w = { .steps = normalizer, .out = out };
    const char *end = text + bytes;
    out->bytes = 0;
    if (!ft_text_reserve(out, bytes + 4))
        return FT_ENOMEM;
    while (text < end && !w.no_memory) {
        uint32_t c = ft_utf8_next(&text);
        if (c < 0x80)
            put_cleaned_ascii(&w, (unsigned char) c);
        else
            put_cleaned(&w, c);
    }
    end_run(&w);
    ft_mark_run_fini(&w.run);
    return w.no_memory ? FT_ENOMEM : FT_OK;
}

/* ------------------------------------------------------------------------------------------ */

typedef enum { LETTER, SPACE, PUNCTUATION } kind;

static kind kind_of(uint32_t c)
{
    static const unsigned char ascii[0x80] = {
        ['\t' ... '\r'] = SPACE,     [' '] = SPACE,
        ['!' ... '/'] = PUNCTUATION, [':' ... '@'] = PUNCTUATION,
        ['[' ... '`'] = PUNCTUATION, ['{' ... '~'] = PUNCTUATION,
    };
    if (c < 0x80)
        return (kind) ascii[c];
    if (ft_char_is_space(c))
        return SPACE;
    return ft_char_is_punctuation(c) ? PUNCTUATION : LETTER;
}

size_t ft_bert_next_word(const char **at, const char *end, const char **word)
{
    kind first = SPACE;
    const char *next = *at;
    do {
        *word = next;
        if (next == end)
            break;
        first = kind_of(ft_utf8_next(&next));
    } while (first == SPACE);
    *at = next;
    if (first == LETTER)
        while (next < end && kind_of(ft_utf8_next(&next)) == LETTER)
            *at = next;
    return (size_t) (*at - *word);
}
