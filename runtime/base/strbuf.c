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
static void update_capacity(ft_strbuf *text)
{
    text->capacity =
        text->max_bytes > 0 ? ft_min_size(text->allocated, text->max_bytes) : text->allocated;
}

void ft_strbuf_reset(ft_strbuf *text, size_t max_bytes)
{
    text->bytes = 0;
    text->max_bytes = max_bytes;
    text->overflowed = false;
    update_capacity(text);
}

size_t ft_strbuf_growth_limit(size_t bytes)
{
    const size_t large = (size_t) 16 << 20;
    return ft_min_size(16 * bytes + 1024, 3 * bytes + large);
}

bool ft_strbuf_reserve(ft_strbuf *text, size_t more)
{
    if (text->capacity - text->bytes >= more)
        return true;
    size_t wanted;
    text->overflowed |= text->max_bytes > 0 && text->max_bytes - text->bytes < more;
    if (text->overflowed || !ft_checked_add(text->allocated, more, &wanted) ||
        !ft_checked_mul(wanted, 2, &wanted))
        return false;
    char *data = realloc(text->data, wanted);
    if (data == NULL)
        return false;
    text->data = data;
    text->allocated = wanted;
    update_capacity(text);
    return true;
}

bool ft_strbuf_append(ft_strbuf *text, const char *bytes, size_t count)
{
    if (!ft_strbuf_reserve(text, count))
        return false;
    if (count > 0)
        memcpy(text->data + text->bytes, bytes, count);
    text->bytes += count;
    return true;
}

bool ft_strbuf_append_multibyte(ft_strbuf *text, uint32_t c)
{
    if (!ft_strbuf_reserve(text, 4))
        return false;
    text->bytes += (size_t) utf8proc_encode_char((utf8proc_int32_t) c,
                                                 (utf8proc_uint8_t *) text->data + text->bytes);
    return true;
}

void ft_strbuf_fini(ft_strbuf *text)
{
    free(text->data);
    *text = (ft_strbuf){ 0 };
}
