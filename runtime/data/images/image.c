/*
 * image.c - detect the format of an image, and enforce limits.
 *
 * A file is decoded while it is read; it is never completely in memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/images/decoder.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

ft_status ft_image_take(ft_image_source *from, void *to, size_t bytes, size_t *got)
{
    *got = fread(to, 1, bytes, from->file);
    from->read += *got;
    if (*got < bytes && ferror(from->file))
        return ft_fail_errno(from->err, "%s: cannot read", from->what);
    if (from->read > FT_IMAGE_MOST_BYTES)
        return ft_fail(from->err, FT_ELIMIT, "%s: is larger than %d MiB, the limit for images",
                       from->what, FT_IMAGE_MOST_BYTES >> 20);
    return FT_OK;
}

ft_status ft_image_check_memory(const ft_image_source *from, size_t bytes)
{
    if (bytes <= FT_IMAGE_MOST_MEMORY)
        return FT_OK;
    return ft_fail(from->err, FT_ELIMIT, "%s: decoding needs %zu MiB, the limit is %d",
                   from->what, bytes >> 20, FT_IMAGE_MOST_MEMORY >> 20);
}

ft_status ft_image_begin(const ft_image_source *from, size_t width, size_t height)
{
    size_t pixels;
    if (width == 0 || height == 0)
        return ft_fail(from->err, FT_EFORMAT, "%s: %zu x %zu pixels", from->what, width, height);
    if (width > FT_IMAGE_MOST_SIDE || height > FT_IMAGE_MOST_SIDE)
        return ft_fail(from->err, FT_ELIMIT,
                       "%s: %zu x %zu pixels, at most %d per side are supported", from->what, width,
                       height, FT_IMAGE_MOST_SIDE);
    if (!ft_mul(width, height, &pixels) || pixels > from->most)
        return ft_fail(from->err, FT_ELIMIT, "%s: %zu x %zu pixels, at most %zu are supported",
                       from->what, width, height, from->most);
    from->out->width = width;
    from->out->height = height;
    from->out->rgb = ft_array(pixels, 3);
    return from->out->rgb != NULL
               ? FT_OK
               : ft_fail(from->err, FT_ENOMEM, "%s: no memory for %zu x %zu pixels", from->what,
                         width, height);
}

void ft_image_fini(ft_image *image)
{
    free(image->rgb);
    *image = (ft_image){ 0 };
}

static ft_status decode_format(ft_image_source *from)
{
    size_t got;
    FT_TRY(ft_image_take(from, from->signature, FT_IMAGE_SIGNATURE, &got));
    bool whole = got == FT_IMAGE_SIGNATURE;
    if (whole && memcmp(from->signature, "\x89PNG\r\n\x1a\n", 8) == 0)
        return ft_image_decode_png(from);
    if (whole && memcmp(from->signature, "\xff\xd8\xff", 3) == 0)
        return ft_image_decode_jpeg(from);
    return ft_fail(from->err, FT_EUNSUPPORTED, "%s: is neither a PNG nor a JPEG image", from->what);
}

/* Decode a file and close it. */
static ft_status decode(ft_image *out, FILE *file, const char *what, size_t most, ft_error *err)
{
    ft_image_source from = { .file = file, .most = most, .what = what, .out = out, .err = err };
    ft_status status = decode_format(&from);
    fclose(file);
    if (status != FT_OK)
        ft_image_fini(out);
    return status;
}

ft_status ft_image_decode(ft_image *out, const void *data, size_t bytes, const char *what,
                          size_t most, ft_error *err)
{
    const union {
        const void *data;
        void *writable; /* fmemopen takes a non-const pointer, but only reads */
    } memory = { data };
    FILE *file = fmemopen(memory.writable, bytes, "rb");
    *out = (ft_image){ 0 };
    if (file == NULL)
        return ft_fail_errno(err, "%s", what);
    return decode(out, file, what, most, err);
}

ft_status ft_image_read(ft_image *out, const char *path, ft_error *err)
{
    FILE *file = fopen(path, "rb");
    *out = (ft_image){ 0 };
    if (file == NULL)
        return ft_fail_errno(err, "%s: cannot open", path);
    return decode(out, file, path, FT_IMAGE_MOST_PIXELS, err);
}
