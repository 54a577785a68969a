/*
 * utf8.h - characters in and out of UTF-8.
 *
 * Text from outside is checked once, as a whole, by ft_utf8_valid(); everything after that may
 * trust it, so stepping through characters needs neither bounds nor error paths.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_BASE_UTF8_H
#define FT_RUNTIME_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <utf8proc.h>

/* Bytes before the first that is not UTF-8: `bytes` when all of the text is valid. */
static inline size_t ft_utf8_valid(const char *text, size_t bytes)
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

/* True for the second and later bytes of a character. */
static inline bool ft_utf8_continues(char byte)
{
    return ((unsigned char) byte & 0xc0) == 0x80;
}

/* The character at *text, which is valid UTF-8; moves *text behind it. */
static inline uint32_t ft_utf8_next(const char **text)
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

/* The character that ends at `end`, behind at least one character of valid UTF-8. */
static inline uint32_t ft_utf8_before(const char *end)
{
    do
        end--;
    while (ft_utf8_continues(*end));
    return ft_utf8_next(&end);
}

#endif
