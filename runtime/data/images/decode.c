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

typedef ft_status (*decode_fn)(ft_image_source *from);

static ft_status find_decoder(ft_image_source *from, decode_fn *out)
{
    size_t got;
    *out = NULL;
    FT_TRY(ft_image_source_read(from, from->signature, FT_IMAGE_SIGNATURE, &got));
    bool complete = got == FT_IMAGE_SIGNATURE;
    if (complete && memcmp(from->signature, "\x89PNG\r\n\x1a\n", 8) == 0)
        *out = ft_image_decode_png;
    else if (complete && memcmp(from->signature, "\xff\xd8\xff", 3) == 0)
        *out = ft_image_decode_jpeg;
    if (*out != NULL)
        return FT_OK;
    return ft_fail(from->err, FT_EUNSUPPORTED, "%s: is neither a PNG nor a JPEG image",
                   from->label);
}

static ft_status decode_format(ft_image_source *from)
{
    decode_fn decode;
    FT_TRY(find_decoder(from, &decode));
    return decode(from);
}

/* Without its library, the decoder of a format only fails, and says why. */
static bool is_missing(decode_fn decode)
{
    bool missing = false;
#ifndef HAVE_LIBPNG
    missing |= decode == ft_image_decode_png;
#endif
#ifndef HAVE_LIBJPEG
    missing |= decode == ft_image_decode_jpeg;
#endif
    (void) decode;
    return missing;
}

ft_status ft_image_check(const char *path, ft_error *err)
{
    decode_fn decode;
    ft_image_source from = { .file = fopen(path, "rb"), .label = path, .err = err };
    if (from.file == NULL)
        return ft_fail_errno(err, "%s: cannot open", path);
    ft_status status = find_decoder(&from, &decode);
    if (status == FT_OK && is_missing(decode))
        status = decode(&from);
    fclose(from.file);
    return status;
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
