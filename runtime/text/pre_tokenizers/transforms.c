/*
 * transforms.c - the steps that transform a piece.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/pre_tokenizers/transforms.h"

#include "runtime/text/normalizers/characters.h"
#include "runtime/text/normalizers/replace.h"
#include "runtime/text/unicode/byte_chars.h"

#include <string.h>

static bool replace(const ft_piece *in, ft_aligned_buf *out)
{
    const char *character = ft_piece_step(in)->character, *text = in->text.text;
    size_t bytes = strlen(character), copied = 0;
    bool ok = ft_strbuf_reserve(&out->text, in->text.bytes);
    for (size_t i = 0; ok && i < in->text.bytes; i++) {
        if (text[i] != ' ')
            continue;
        ok = ft_aligned_buf_copy(out, &in->text, copied, i) &&
             ft_aligned_buf_append(out, character, bytes, ft_aligned_source(&in->text, i, i + 1));
        copied = i + 1;
    }
    return ok && ft_aligned_buf_copy(out, &in->text, copied, in->text.bytes);
}

ft_status ft_replace_spaces(const ft_piece *in)
{
    return ft_piece_transform(in, replace);
}

static bool prepend(const ft_piece *in, ft_aligned_buf *out)
{
    return ft_normalize_prepend(&in->text, ft_piece_step(in)->character, out);
}

/* Whether a piece comes from the start of the whole text. */
static bool is_first(const ft_piece *in)
{
    return in->splitter->tracks ? ft_aligned_source(&in->text, 0, 1).start == 0 : in->first;
}

ft_status ft_prepend_character(const ft_piece *in)
{
    const ft_pretokenize_step *step = ft_piece_step(in);
    size_t bytes = strlen(step->character);
    bool present = in->text.bytes >= bytes && memcmp(in->text.text, step->character, bytes) == 0;
    if (present || (step->only_first && !is_first(in)))
        return ft_piece_pass_on(in, 0, in->text.bytes);
    return ft_piece_transform(in, prepend);
}

/* Without sources, bytes are mapped one by one. */
static bool map(const ft_piece *in, ft_aligned_buf *out)
{
    bool ok = ft_strbuf_reserve(&out->text, 2 * in->text.bytes);
    if (out->tracks)
        return ok && ft_normalize_bytes(&in->text, out);
    for (size_t i = 0; ok && i < in->text.bytes; i++)
        ok = ft_strbuf_append_char(&out->text, ft_byte_to_char((uint8_t) in->text.text[i]));
    return ok;
}

ft_status ft_bytes_to_chars(const ft_piece *in)
{
    return ft_piece_transform(in, map);
}
