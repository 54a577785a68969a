/*
 * replace.c - what is inserted comes from the character before, at the start from the first one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/normalizers/replace.h"

#include "runtime/error.h"

#include <string.h>

/* The first character inserted takes the place of the text's first, which is inserted again. */
bool ft_normalize_prepend(const ft_aligned_text *in, const char *content, ft_aligned_buf *out)
{
    ft_transform t = { .in = in, .out = out };
    if (in->bytes == 0)
        return true;
    uint32_t first = ft_transform_peek(&t);
    const char *next = content, *end = content + strlen(content);
    while (next < end) {
        uint32_t c = ft_utf8_decode_next(&next);
        if (t.at == 0)
            ft_transform_replace(&t, c);
        else
            ft_transform_insert(&t, c);
    }
    if (t.at == 0)
        ft_transform_replace(&t, first);
    else
        ft_transform_insert(&t, first);
    return !t.failed && ft_aligned_buf_copy(out, in, t.at, in->bytes);
}

/* Where the content comes from: the last byte of the match's place, or of what is before it. */
static ft_byte_range source_of_match(const ft_aligned_text *in, size_t start)
{
    size_t first = start;
    if (start == 0)
        return (ft_byte_range){ 0, 0 };
    if (in->source != NULL)
        return in->source[start - 1];
    do
        first--;
    while (ft_utf8_is_continuation(in->text[first]));
    return ft_aligned_source(in, first, start);
}

ft_status ft_normalize_replace(const ft_aligned_text *in, const ft_regex *pattern,
                               ft_regex_workspace *workspace, const char *content,
                               ft_aligned_buf *out)
{
    ft_regex_search search = { .regex = pattern, .text = in->text, .bytes = in->bytes };
    size_t copied = 0, start, end, content_bytes = strlen(content);
    bool found, ok = true;
    while (ok) {
        FT_TRY(ft_regex_next(&search, workspace, &found, &start, &end));
        if (!found)
            break;
        ft_byte_range from = out->tracks ? source_of_match(in, end) : (ft_byte_range){ 0, 0 };
        ok = ft_aligned_buf_copy(out, in, copied, start) &&
             ft_aligned_buf_append(out, content, content_bytes, from);
        copied = end;
    }
    ok = ok && ft_aligned_buf_copy(out, in, copied, in->bytes);
    return ok ? FT_OK : out->text.overflowed ? FT_ELIMIT : FT_ENOMEM;
}
