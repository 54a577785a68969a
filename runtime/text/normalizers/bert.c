/*
 * bert.c - clean, space out ideographs, strip accents, lowercase: in one pass.
 *
 * Each step is a function that passes its characters to the next one, so the text is read and
 * written once. Only the canonical ordering of combining marks needs lookahead: a run of marks is
 * buffered until a character of combining class 0 arrives. Nonspacing marks are removed before
 * that, so hardly any text ever buffers a run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/normalizers/bert.h"

#include "runtime/text/unicode/combining_marks.h"
#include "runtime/text/unicode/unicode.h"
#include "runtime/base/utf8.h"

typedef struct {
    const ft_bert_normalizer *options;
    ft_strbuf *out;
    ft_combining_sequence marks; /* buffered marks */
    bool out_of_memory;          /* once true, output is discarded */
} normalizer_state;

/* ------------------------------------------------------------------------------------------ */

static void emit(normalizer_state *w, uint32_t c)
{
    if (!ft_strbuf_append_char(w->out, c))
        w->out_of_memory = true;
}

static void emit_lowercase(normalizer_state *w, uint32_t c)
{
    uint32_t lower[FT_CHAR_MAX_LOWERED];
    int count = ft_char_lower(c, lower);
    for (int i = 0; i < count; i++)
        emit(w, lower[i]);
}

static void emit_cased(normalizer_state *w, uint32_t c)
{
    if (w->options->lowercase)
        emit_lowercase(w, c);
    else
        emit(w, c);
}

/* ------------------------------------------------------------------------------------------ */

/* Output the buffered marks. */
static void flush_marks(normalizer_state *w)
{
    ft_combining_sequence_sort(&w->marks);
    for (size_t i = 0; i < w->marks.count; i++)
        emit_cased(w, ft_combining_mark_code(w->marks.mark[i]));
    w->marks.count = 0;
}

static void buffer_mark(normalizer_state *w, uint32_t c, uint8_t combining_class)
{
    if (!ft_combining_sequence_add(&w->marks, c, combining_class, false))
        w->out_of_memory = true;
}

static void emit_without_accents(normalizer_state *w, uint32_t c)
{
    uint32_t part[FT_CHAR_MAX_DECOMPOSED];
    int count = ft_char_decompose(c, part);
    for (int i = 0; i < count; i++) {
        uint8_t combining_class = ft_char_combining_class(part[i]);
        if (combining_class == 0)
            flush_marks(w);
        if (ft_char_is_mark(part[i]))
            continue;
        if (combining_class == 0)
            emit_cased(w, part[i]);
        else
            buffer_mark(w, part[i], combining_class);
    }
}

static void emit_stripped(normalizer_state *w, uint32_t c)
{
    if (w->options->strip_accents)
        emit_without_accents(w, c);
    else
        emit_cased(w, c);
}

static void emit_spaced(normalizer_state *w, uint32_t c)
{
    bool is_ideograph = w->options->handle_chinese_chars && ft_char_is_ideograph(c);
    if (is_ideograph)
        emit_stripped(w, ' ');
    emit_stripped(w, c);
    if (is_ideograph)
        emit_stripped(w, ' ');
}

static void emit_cleaned(normalizer_state *w, uint32_t c)
{
    if (!w->options->clean_text)
        emit_spaced(w, c);
    else if (c == '\t' || c == '\n' || c == '\r')
        emit_spaced(w, ' ');
    else if (c != 0xfffd && !ft_char_is_control(c))
        emit_spaced(w, ft_char_is_space(c) ? ' ' : c);
}

/* emit_cleaned() specialized for ASCII, which most text is. */
static void emit_cleaned_ascii(normalizer_state *w, unsigned char c)
{
    if (w->options->clean_text) {
        if (c == '\t' || c == '\n' || c == '\r')
            c = ' ';
        else if (c < ' ' || c == 0x7f)
            return;
    }
    if (w->options->lowercase && c >= 'A' && c <= 'Z')
        c = (unsigned char) (c - 'A' + 'a');
    if (w->marks.count > 0)
        flush_marks(w);
    emit(w, c);
}

ft_status ft_bert_normalize(const ft_bert_normalizer *normalizer, const char *text, size_t bytes,
                            ft_strbuf *out)
{
    normalizer_state w = { .options = normalizer, .out = out };
    const char *end = text + bytes;
    out->bytes = 0;
    if (!ft_strbuf_reserve(out, bytes + 4))
        return FT_ENOMEM;
    while (text < end && !w.out_of_memory) {
        uint32_t c = ft_utf8_decode_next(&text);
        if (c < 0x80)
            emit_cleaned_ascii(&w, (unsigned char) c);
        else
            emit_cleaned(&w, c);
    }
    flush_marks(&w);
    ft_combining_sequence_fini(&w.marks);
    return w.out_of_memory ? FT_ENOMEM : FT_OK;
}

/* ------------------------------------------------------------------------------------------ */

typedef enum { LETTER, SPACE, PUNCTUATION } char_kind;

static char_kind char_kind_of(uint32_t c)
{
    static const unsigned char ascii[0x80] = {
        ['\t' ... '\r'] = SPACE,     [' '] = SPACE,
        ['!' ... '/'] = PUNCTUATION, [':' ... '@'] = PUNCTUATION,
        ['[' ... '`'] = PUNCTUATION, ['{' ... '~'] = PUNCTUATION,
    };
    if (c < 0x80)
        return (char_kind) ascii[c];
    if (ft_char_is_space(c))
        return SPACE;
    return ft_char_is_punctuation(c) ? PUNCTUATION : LETTER;
}

size_t ft_bert_next_word(const char **at, const char *end, const char **word)
{
    char_kind first = SPACE;
    const char *next = *at;
    do {
        *word = next;
        if (next == end)
            break;
        first = char_kind_of(ft_utf8_decode_next(&next));
    } while (first == SPACE);
    *at = next;
    if (first == LETTER)
        while (next < end && char_kind_of(ft_utf8_decode_next(&next)) == LETTER)
            *at = next;
    return (size_t) (*at - *word);
}
