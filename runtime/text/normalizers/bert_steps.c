/*
 * bert_steps.c - BERT's normalizer with sources: one step after the other, as in the `tokenizers`
 * library, so that sources follow from the rules of each.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/normalizers/bert.h"

#include "runtime/text/normalizers/characters.h"
#include "runtime/text/normalizers/forms.h"
#include "runtime/text/unicode/unicode.h"

static bool is_kept(uint32_t c)
{
    return c == '\t' || c == '\n' || c == '\r' || (c != 0 && c != 0xfffd && !ft_char_is_control(c));
}

static bool is_spacing_or_letter(uint32_t c)
{
    return !ft_char_is_mark(c);
}

static bool clean(const ft_aligned_text *in, ft_aligned_buf *out)
{
    ft_transform t = { .in = in, .out = out };
    while (t.at < in->bytes && !t.failed) {
        uint32_t c = ft_transform_peek(&t);
        if (!is_kept(c))
            ft_transform_skip(&t, 1);
        else
            ft_transform_replace(&t, ft_char_is_space(c) ? ' ' : c);
    }
    return !t.failed;
}

static bool space_out_ideographs(const ft_aligned_text *in, ft_aligned_buf *out)
{
    ft_transform t = { .in = in, .out = out };
    while (t.at < in->bytes && !t.failed) {
        uint32_t c = ft_transform_peek(&t);
        bool is_ideograph = ft_char_is_ideograph(c);
        ft_transform_replace(&t, is_ideograph ? ' ' : c);
        if (!is_ideograph)
            continue;
        ft_transform_insert(&t, c);
        ft_transform_insert(&t, ' ');
    }
    return !t.failed;
}

static bool decompose(const ft_aligned_text *in, ft_aligned_buf *out)
{
    return ft_normalize_form((ft_normal_form){ 0 }, in, out);
}

static bool strip_marks(const ft_aligned_text *in, ft_aligned_buf *out)
{
    return ft_normalize_filter(in, is_spacing_or_letter, out);
}

bool ft_bert_normalize_aligned(const ft_bert_normalizer *normalizer, const ft_aligned_text *in,
                               ft_aligned_buf *out)
{
    const struct {
        bool wanted;
        bool (*apply)(const ft_aligned_text *in, ft_aligned_buf *out);
    } steps[] = {
        { normalizer->clean_text, clean },
        { normalizer->handle_chinese_chars, space_out_ideographs },
        { normalizer->strip_accents, decompose },
        { normalizer->strip_accents, strip_marks },
        { normalizer->lowercase, ft_normalize_lowercase },
    };
    ft_aligned_buf buffer[2] = { { .tracks = true }, { .tracks = true } };
    ft_aligned_text text = *in;
    bool ok = true;
    int next = 0;
    for (size_t i = 0; ok && i < sizeof steps / sizeof *steps; i++) {
        if (!steps[i].wanted)
            continue;
        ft_aligned_buf_reset(&buffer[next], out->text.max_bytes);
        ok = steps[i].apply(&text, &buffer[next]);
        out->text.overflowed |= buffer[next].text.overflowed;
        text = ft_aligned_buf_view(&buffer[next]);
        next = !next;
    }
    ok = ok && ft_aligned_buf_copy(out, &text, 0, text.bytes);
    ft_aligned_buf_fini(&buffer[0]);
    ft_aligned_buf_fini(&buffer[1]);
    return ok;
}
