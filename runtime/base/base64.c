/*
 * base64.c - four letters are three bytes; "=" pads the last four.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/base64.h"

#include <stdint.h>
#include <stdlib.h>

static int value_of(char letter)
{
    if (letter >= 'A' && letter <= 'Z')
        return letter - 'A';
    if (letter >= 'a' && letter <= 'z')
        return letter - 'a' + 26;
    if (letter >= '0' && letter <= '9')
        return letter - '0' + 52;
    return letter == '+' ? 62 : letter == '/' ? 63 : -1;
}

unsigned char *ft_base64_decode(const char *text, size_t count, size_t *bytes)
{
    size_t letters = count, written = 0;
    uint32_t bits = 0;
    while (letters > 0 && count - letters < 2 && text[letters - 1] == '=')
        letters--;
    unsigned char *out = count % 4 == 0 ? malloc(count / 4 * 3 + 1) : NULL;
    for (size_t i = 0; out != NULL && i < letters; i++) {
        int value = value_of(text[i]);
        if (value < 0) {
            free(out);
            return NULL;
        }
        bits = bits << 6 | (uint32_t) value;
        if (i % 4 > 0)
            out[written++] = (unsigned char) (bits >> (6 - 2 * (i % 4)));
    }
    *bytes = written;
    return out;
}
