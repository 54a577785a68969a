/*
 * utf8.h - decode and validate UTF-8.
 *
 * Input text is validated once by ft_utf8_valid_prefix(); all later code relies on it, so decoding
 * needs neither bounds checks nor error paths.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_BASE_UTF8_H
#define FT_RUNTIME_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <utf8proc.h>

/* Length in bytes of the longest valid prefix: `bytes` when the whole text is valid. */
static inline size_t ft_utf8_valid_prefix(const char *text, size_t bytes)
{
    const utf8proc_uint8_t *at = (const utf8proc_uint8_t *) text;
    size_t done = 0;
    while (done < bytes) {
        utf8proc_int32_t code;
        utf8proc_ssize_t step = 1;
        if (at[done] >= 0x80)
            step = utf8proc_iterate(at + done, (utf8proc_ssize_t) (bytes - done), &code);
        if (step <= 0)
            break;
        done += (size_t) step;
    }
    return done;
}

/* Whether a byte is a continuation byte. */
static inline bool ft_utf8_is_continuation(char byte)
{
    return ((unsigned char) byte & 0xc0) == 0x80;
}

/* Decode the character at *text, which is valid UTF-8, and advance *text past it. */
static inline uint32_t ft_utf8_decode_next(const char **text)
{
    const unsigned char *at = (const unsigned char *) *text;
    uint32_t lead = at[0];
    if (lead < 0x80) {
        *text += 1;
        return lead;
    }
    if (lead < 0xe0) {
        *text += 2;
        return (lead & 0x1f) << 6 | (at[1] & 0x3f);
    }
    if (lead < 0xf0) {
        *text += 3;
        return (lead & 0x0f) << 12 | (at[1] & 0x3fu) << 6 | (at[2] & 0x3f);
    }
    *text += 4;
    return (lead & 0x07) << 18 | (at[1] & 0x3fu) << 12 | (at[2] & 0x3fu) << 6 | (at[3] & 0x3f);
}

/* The character that ends at `end`, after at least one character of valid UTF-8. */
static inline uint32_t ft_utf8_decode_prev(const char *end)
{
    do
        end--;
    while (ft_utf8_is_continuation(*end));
    return ft_utf8_decode_next(&end);
}

#endif
