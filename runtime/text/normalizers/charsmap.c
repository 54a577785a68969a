/*
 * charsmap.c - a unit of the double array holds the label of its node, the offset of its children
 * and whether it ends a key; every index is checked, as the table comes from a file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/normalizers/charsmap.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

enum { MAX_GRAPHEME = 5 /* bytes of a grapheme that is replaced as a whole */ };

/* ---- Parsing -------------------------------------------------------------------------------- */

static ft_status fail(char why[FT_CHARSMAP_ERROR_SIZE], const char *expected)
{
    snprintf(why, FT_CHARSMAP_ERROR_SIZE, "%s", expected);
    return FT_EFORMAT;
}

static ft_status copy(ft_charsmap *out, const unsigned char *blob, size_t array, size_t bytes)
{
    out->units = array / sizeof *out->unit;
    out->bytes = bytes - array + 1;
    out->unit = ft_calloc(out->units, sizeof *out->unit);
    out->replacement = ft_calloc(out->bytes, 1);
    if (out->unit == NULL || out->replacement == NULL)
        return FT_ENOMEM;
    for (size_t i = 0; i < out->units; i++)
        out->unit[i] = ft_load_le32(blob + i * sizeof *out->unit);
    memcpy(out->replacement, blob + array, bytes - array);
    return FT_OK;
}

ft_status ft_charsmap_parse(ft_charsmap *out, const unsigned char *blob, size_t bytes,
                            char why[FT_CHARSMAP_ERROR_SIZE])
{
    *out = (ft_charsmap){ 0 };
    if (bytes == 0)
        return FT_OK;
    if (bytes < 4 || bytes > FT_CHARSMAP_MAX_BYTES)
        return fail(why, "a charsmap of 4 bytes to 16 MiB");
    size_t array = ft_load_le32(blob);
    if (array > bytes - 4 || array % 4 != 0 || array == 0)
        return fail(why, "a charsmap whose double array is inside it");
    if (ft_utf8_valid_prefix((const char *) blob + 4 + array, bytes - 4 - array) !=
        bytes - 4 - array)
        return fail(why, "a charsmap whose replacements are valid UTF-8");
    ft_status status = copy(out, blob + 4, array, bytes - 4);
    if (status != FT_OK)
        ft_charsmap_fini(out);
    return status;
}

void ft_charsmap_fini(ft_charsmap *charsmap)
{
    free(charsmap->unit);
    free(charsmap->replacement);
    *charsmap = (ft_charsmap){ 0 };
}

/* ---- Lookup ---------------------------------------------------------------------------------- */

static uint32_t label_of(uint32_t unit)
{
    return unit & (1u << 31 | 0xff);
}

static size_t offset_of(uint32_t unit)
{
    return (size_t) (unit >> 10) << ((unit & 1u << 9) >> 6);
}

static bool ends_key(uint32_t unit)
{
    return (unit >> 8 & 1) != 0;
}

/* The replacement of the shortest key that the text starts with, or NULL. */
static const char *find(const ft_charsmap *map, const char *text, size_t bytes)
{
    size_t node = map->units > 0 ? offset_of(map->unit[0]) : 0;
    for (size_t i = 0; i < bytes && map->units > 0 && text[i] != '\0'; i++) {
        unsigned char byte = (unsigned char) text[i];
        node ^= byte;
        if (node >= map->units || label_of(map->unit[node]) != byte)
            return NULL;
        uint32_t unit = map->unit[node];
        node ^= offset_of(unit);
        if (!ends_key(unit))
            continue;
        size_t value = node < map->units ? map->unit[node] & ~(1u << 31) : SIZE_MAX;
        bool is_start = value < map->bytes && !ft_utf8_is_continuation(map->replacement[value]);
        return is_start ? map->replacement + value : NULL;
    }
    return NULL;
}

/* ---- Normalization --------------------------------------------------------------------------- */

/*
 * The last character is held back: a replacement that is shorter than what it replaces also takes
 * the place of the characters after it.
 */
typedef struct {
    const ft_charsmap *map;
    ft_transform transform;
    uint32_t last;
    int change; /* of the last: 1 if it is inserted, -n if it replaces n more characters */
    bool has_last;
} normalizer;

static void flush(normalizer *n)
{
    if (!n->has_last)
        return;
    if (n->change > 0)
        ft_transform_insert(&n->transform, n->last);
    else
        ft_transform_replace(&n->transform, n->last);
    if (n->change < 0)
        ft_transform_skip(&n->transform, (size_t) -n->change);
}

static void put(normalizer *n, uint32_t c, int change)
{
    flush(n);
    n->last = c;
    n->change = change;
    n->has_last = true;
}

static int count_characters(const char *text, size_t bytes)
{
    int count = 0;
    for (size_t i = 0; i < bytes; i++)
        count += !ft_utf8_is_continuation(text[i]);
    return count;
}

/* The first characters take the place of those that are replaced, the others are inserted. */
static void replace(normalizer *n, const char *text, size_t bytes, const char *replacement)
{
    const char *next = replacement;
    int replaced = count_characters(text, bytes), written = 0;
    while (*next != '\0') {
        uint32_t c = ft_utf8_decode_next(&next);
        put(n, c, written++ >= replaced);
    }
    if (written < replaced)
        n->change += written - replaced;
}

static void normalize_characters(normalizer *n, const char *text, size_t bytes)
{
    for (const char *next = text, *end = text + bytes; next < end;) {
        const char *start = next;
        uint32_t c = ft_utf8_decode_next(&next);
        const char *found = find(n->map, start, (size_t) (next - start));
        if (found == NULL)
            put(n, c, 0);
        else
            replace(n, start, (size_t) (next - start), found);
    }
}

static void normalize_grapheme(normalizer *n, const char *text, size_t bytes)
{
    const char *found = bytes <= MAX_GRAPHEME ? find(n->map, text, bytes) : NULL;
    if (found != NULL)
        replace(n, text, bytes, found);
    else
        normalize_characters(n, text, bytes);
}

bool ft_charsmap_normalize(const ft_charsmap *charsmap, const ft_aligned_text *in,
                           ft_aligned_buf *out)
{
    normalizer n = { .map = charsmap, .transform = { .in = in, .out = out } };
    const char *start = in->text, *next = start, *end = start + in->bytes;
    utf8proc_int32_t state = 0;
    uint32_t previous = next < end ? ft_utf8_decode_next(&next) : 0;
    while (next < end && !n.transform.failed) {
        const char *at = next;
        uint32_t c = ft_utf8_decode_next(&next);
        if (utf8proc_grapheme_break_stateful((utf8proc_int32_t) previous, (utf8proc_int32_t) c,
                                             &state)) {
            normalize_grapheme(&n, start, (size_t) (at - start));
            start = at;
        }
        previous = c;
    }
    if (start < end)
        normalize_grapheme(&n, start, (size_t) (end - start));
    flush(&n);
    return !n.transform.failed;
}
