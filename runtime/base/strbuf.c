/*
 * strbuf.c - the allocation doubles, so appending takes amortized constant time per byte.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/strbuf.h"

#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* The usable capacity: at most max_bytes of the allocation. */
static void find_capacity(ft_text *text)
{
    text->capacity = text->most > 0 ? ft_min_size(text->allocated, text->most) : text->allocated;
}

void ft_text_begin(ft_text *text, size_t most)
{
    text->bytes = 0;
    text->most = most;
    text->full = false;
    find_capacity(text);
}

size_t ft_text_growth(size_t bytes)
{
    const size_t large = (size_t) 16 << 20;
    return ft_min_size(16 * bytes + 1024, 3 * bytes + large);
}

bool ft_text_reserve(ft_text *text, size_t more)
{
    if (text->capacity - text->bytes >= more)
        return true;
    size_t wanted;
    text->full |= text->most > 0 && text->most - text->bytes < more;
    if (text->full || !ft_add(text->allocated, more, &wanted) || !ft_mul(wanted, 2, &wanted))
        return false;
    char *data = realloc(text->data, wanted);
    if (data == NULL)
        return false;
    text->data = data;
    text->allocated = wanted;
    find_capacity(text);
    return true;
}

bool ft_text_put(ft_text *text, const char *bytes, size_t count)
{
    if (!ft_text_reserve(text, count))
        return false;
    if (count > 0)
        memcpy(text->data + text->bytes, bytes, count);
    text->bytes += count;
    return true;
}

bool ft_text_put_wide(ft_text *text, uint32_t c)
{
    if (!ft_text_reserve(text, 4))
        return false;
    text->bytes += (size_t) utf8proc_encode_char((utf8proc_int32_t) c,
                                                 (utf8proc_uint8_t *) text->data + text->bytes);
    return true;
}

void ft_text_fini(ft_text *text)
{
    free(text->data);
    *text = (ft_text){ 0 };
}
