/*
 * characters.c - normalizers that look at one character at a time, and Strip.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/normalizers/characters.h"

#include "runtime/text/unicode/byte_chars.h"
#include "runtime/text/unicode/unicode.h"

bool ft_normalize_lowercase(const ft_aligned_text *in, ft_aligned_buf *out)
{
    ft_transform t = { .in = in, .out = out };
    while (t.at < in->bytes && !t.failed) {
        uint32_t lower[FT_CHAR_MAX_LOWERED];
        int count = ft_char_lower(ft_transform_peek(&t), lower);
        ft_transform_replace(&t, lower[0]);
        for (int i = 1; i < count; i++)
            ft_transform_insert(&t, lower[i]);
    }
    return !t.failed;
}

bool ft_normalize_filter(const ft_aligned_text *in, bool (*keep)(uint32_t c), ft_aligned_buf *out)
{
    const char *next = in->text, *end = in->text + in->bytes;
    size_t copied = 0;
    bool ok = true;
    while (ok && next < end) {
        size_t at = (size_t) (next - in->text);
        if (keep(ft_utf8_decode_next(&next)))
            continue;
        ok = ft_aligned_buf_copy(out, in, copied, at);
        copied = (size_t) (next - in->text);
    }
    return ok && ft_aligned_buf_copy(out, in, copied, in->bytes);
}

static bool is_no_mark(uint32_t c)
{
    return !ft_char_is_any_mark(c);
}

bool ft_normalize_strip_accents(const ft_aligned_text *in, ft_aligned_buf *out)
{
    return ft_normalize_filter(in, is_no_mark, out);
}

/* Control characters other than tab, line feed and carriage return. */
static bool is_dropped_by_nmt(uint32_t c)
{
    return (c >= 0x1 && c <= 0x8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f ||
           c == 0x8f || c == 0x9f;
}

static bool is_space_to_nmt(uint32_t c)
{
    return c == 0x9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 ||
           (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
           c == 0xfeff || c == 0xfffd;
}

bool ft_normalize_nmt(const ft_aligned_text *in, ft_aligned_buf *out)
{
    ft_transform t = { .in = in, .out = out };
    while (t.at < in->bytes && !t.failed) {
        uint32_t c = ft_transform_peek(&t);
        if (is_dropped_by_nmt(c))
            ft_transform_skip(&t, 1);
        else
            ft_transform_replace(&t, is_space_to_nmt(c) ? ' ' : c);
    }
    return !t.failed;
}

bool ft_normalize_bytes(const ft_aligned_text *in, ft_aligned_buf *out)
{
    ft_transform t = { .in = in, .out = out };
    if (!ft_strbuf_reserve(&out->text, 2 * in->bytes))
        return false;
    while (t.at < in->bytes && !t.failed) {
        size_t start = t.at;
        ft_transform_replace(&t, ft_byte_to_char((uint8_t) in->text[start]));
        for (size_t i = start + 1; i < t.at; i++)
            ft_transform_insert(&t, ft_byte_to_char((uint8_t) in->text[i]));
    }
    return !t.failed;
}

bool ft_normalize_strip(const ft_aligned_text *in, bool left, bool right, ft_aligned_buf *out)
{
    size_t start = 0, end = in->bytes;
    const char *next = in->text;
    while (left && start < end && ft_char_is_space(ft_utf8_decode_next(&next)))
        start = (size_t) (next - in->text);
    while (right && end > start && ft_char_is_space(ft_utf8_decode_prev(in->text + end)))
        do
            end--;
        while (ft_utf8_is_continuation(in->text[end]));
    return ft_aligned_buf_copy(out, in, start, end);
}
