/*
 * byte_chars.h - the characters that encode bytes in byte-level vocabularies.
 *
 * Bytes that are visible Latin-1 characters map to themselves; the others, in order, to U+0100 and
 * up. So a space is U+0120, and every byte sequence is encoded without white space.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_UNICODE_BYTE_CHARS_H
#define FT_RUNTIME_TEXT_UNICODE_BYTE_CHARS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    FT_BYTE_CHARS_END = 0x144,   /* all encoding characters are below */
    FT_BYTE_REMAPPED_LOW = 0x21, /* bytes 0 to 0x20, 0x7f to 0xa0, and 0xad are remapped */
    FT_BYTE_REMAPPED_HIGH = 0xa1 - 0x7f,
};

static inline uint32_t ft_byte_to_char(uint8_t byte)
{
    if (byte < 0x21)
        return 0x100u + byte;
    if (byte >= 0x7f && byte < 0xa1)
        return 0x100u + FT_BYTE_REMAPPED_LOW + (byte - 0x7fu);
    if (byte == 0xad)
        return 0x100u + FT_BYTE_REMAPPED_LOW + FT_BYTE_REMAPPED_HIGH;
    return byte;
}

/* The byte that a character encodes; false when it encodes none. */
static inline bool ft_char_to_byte(uint32_t c, uint8_t *byte)
{
    uint32_t offset = c - 0x100;
    if (c >= FT_BYTE_CHARS_END)
        return false;
    if (c < 0x100)
        *byte = (uint8_t) c;
    else if (offset < FT_BYTE_REMAPPED_LOW)
        *byte = (uint8_t) offset;
    else if (offset < FT_BYTE_REMAPPED_LOW + FT_BYTE_REMAPPED_HIGH)
        *byte = (uint8_t) (offset - FT_BYTE_REMAPPED_LOW + 0x7f);
    else
        *byte = 0xad;
    return ft_byte_to_char(*byte) == c;
}

#endif
