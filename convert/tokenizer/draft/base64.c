/*
 * base64.c - three bytes become four characters.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/draft/base64.h"

#include <stdint.h>
#include <stdlib.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *ft_base64_encode(const char *data, size_t bytes)
{
    const unsigned char *from = (const unsigned char *) data;
    char *text = malloc((bytes + 2) / 3 * 4 + 1), *to = text;
    if (text == NULL)
        return NULL;
    for (size_t i = 0; i < bytes; i += 3) {
        size_t left = bytes - i;
        uint32_t triple = (uint32_t) from[i] << 16 | (left > 1 ? (uint32_t) from[i + 1] << 8 : 0) |
                          (left > 2 ? from[i + 2] : 0);
        *to++ = digits[triple >> 18];
        *to++ = digits[triple >> 12 & 63];
        *to++ = left > 1 ? digits[triple >> 6 & 63] : '=';
        *to++ = left > 2 ? digits[triple & 63] : '=';
    }
    *to = '\0';
    return text;
}
