/*
 * pre_tokenizer.c - depth first: each piece goes through all steps before the next piece is split
 * off.
 *
 * So no list of pieces is kept, and a step needs memory for at most one transformed piece.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/pre_tokenizers/pre_tokenizer.h"

#include "runtime/error.h"

static ft_status process(const ft_piece *in)
{
    if (in->step == in->splitter->pretokenizer->count)
        return in->splitter->on_word(in->splitter->user, &in->text);
    return ft_piece_step(in)->apply(in);
}

ft_status ft_piece_pass_on(const ft_piece *in, size_t start, size_t end)
{
    const ft_piece part = { .splitter = in->splitter,
                            .step = in->step + 1,
                            .text = ft_aligned_part(&in->text, start, end),
                            .first = in->first && start == 0 };
    return start < end ? process(&part) : FT_OK;
}

ft_status ft_piece_transform(const ft_piece *in,
                             bool (*function)(const ft_piece *in, ft_aligned_buf *out))
{
    ft_word_splitter *splitter = in->splitter;
    ft_aligned_buf *out = &splitter->text[in->step];
    out->tracks = splitter->tracks;
    ft_aligned_buf_reset(out, in->text.bytes + splitter->growth_left);
    if (!function(in, out)) {
        splitter->overflowed = out->text.overflowed;
        return out->text.overflowed ? FT_ELIMIT : FT_ENOMEM;
    }
    splitter->growth_left = out->text.max_bytes - out->text.bytes; /* no piece gets shorter */
    ft_piece transformed = *in;
    transformed.text = ft_aligned_buf_view(out);
    return ft_piece_pass_on(&transformed, 0, transformed.text.bytes);
}

ft_status ft_word_splitter_run(ft_word_splitter *splitter, const ft_aligned_text *text, bool first)
{
    const ft_piece input = { .splitter = splitter, .text = *text, .first = first };
    return process(&input);
}

static size_t count_patterns(const ft_pretokenizer *pretokenizer)
{
    size_t patterns = 0;
    for (size_t i = 0; i < pretokenizer->count; i++)
        patterns += pretokenizer->step[i].regex.code != NULL;
    return patterns;
}

ft_status ft_word_splitter_init(ft_word_splitter *splitter, size_t bytes)
{
    const size_t patterns = count_patterns(splitter->pretokenizer);
    splitter->growth_left = ft_strbuf_growth_limit(bytes);
    splitter->has_regex = patterns > 0;
    return patterns == 0 ? FT_OK : ft_regex_workspace_init(&splitter->regex, bytes, patterns);
}

void ft_word_splitter_fini(ft_word_splitter *splitter)
{
    for (size_t i = 0; i < splitter->pretokenizer->count; i++)
        ft_aligned_buf_fini(&splitter->text[i]);
    if (splitter->has_regex)
        ft_regex_workspace_fini(&splitter->regex);
}

bool ft_pretokenizer_has_only_first(const ft_pretokenizer *pretokenizer)
{
    for (size_t i = 0; i < pretokenizer->count; i++)
        if (pretokenizer->step[i].only_first)
            return true;
    return false;
}

void ft_pretokenizer_fini(ft_pretokenizer *pretokenizer)
{
    for (size_t i = 0; i < pretokenizer->count; i++)
        ft_regex_fini(&pretokenizer->step[i].regex);
    *pretokenizer = (ft_pretokenizer){ 0 };
}
