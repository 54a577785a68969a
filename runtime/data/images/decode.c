/*
 * decode.c - detect the format of an image and decode it.
 *
 * A file is decoded while it is read; it is never completely in memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/images/decoder.h"

#include "runtime/error.h"

#include <stdio.h>
#include <string.h>

static ft_status decode_format(ft_image_source *from)
{
    size_t got;
    FT_TRY(ft_image_source_read(from, from->signature, FT_IMAGE_SIGNATURE, &got));
    bool complete = got == FT_IMAGE_SIGNATURE;
    if (complete && memcmp(from->signature, "\x89PNG\r\n\x1a\n", 8) == 0)
        return ft_image_decode_png(from);
    if (complete && memcmp(from->signature, "\xff\xd8\xff", 3) == 0)
        return ft_image_decode_jpeg(from);
    return ft_fail(from->err, FT_EUNSUPPORTED, "%s: is neither a PNG nor a JPEG image",
                   from->label);
}

/* Decode a file and close it. */
static ft_status decode(ft_image *out, FILE *file, const char *label, size_t max_pixels,
                        ft_error *err)
{
    ft_image_source from = {
        .file = file, .max_pixels = max_pixels, .label = label, .out = out, .err = err
    };
    ft_status status = decode_format(&from);
    fclose(file);
    if (status != FT_OK)
        ft_image_fini(out);
    return status;
}

ft_status ft_image_decode(ft_image *out, const void *data, size_t bytes, const char *label,
                          size_t max_pixels, ft_error *err)
{
    const union {
        const void *data;
        void *writable; /* fmemopen takes a non-const pointer, but only reads */
    } memory = { data };
    FILE *file = fmemopen(memory.writable, bytes, "rb");
    *out = (ft_image){ 0 };
    if (file == NULL)
        return ft_fail_errno(err, "%s", label);
    return decode(out, file, label, max_pixels, err);
}

ft_status ft_image_read(ft_image *out, const char *path, ft_error *err)
{
    FILE *file = fopen(path, "rb");
    *out = (ft_image){ 0 };
    if (file == NULL)
        return ft_fail_errno(err, "%s: cannot open", path);
    return decode(out, file, path, FT_IMAGE_MAX_PIXELS, err);
}
