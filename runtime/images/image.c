/*
 * image.c - which format a file has, and memory for what is in it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/images/decoder.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/text.h"

#include <stdlib.h>
#include <string.h>

ft_status ft_image_begin(const ft_image_source *from, size_t width, size_t height)
{
    size_t pixels;
    if (width == 0 || height == 0)
        return ft_fail(from->err, FT_EFORMAT, "%s: %zu x %zu pixels", from->what, width, height);
    if (!ft_mul(width, height, &pixels) || pixels > from->most)
        return ft_fail(from->err, FT_ELIMIT, "%s: %zu x %zu pixels, at most %zu are read",
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

static bool begins_with(const ft_image_source *from, const char *bytes, size_t count)
{
    return from->bytes >= count && memcmp(from->data, bytes, count) == 0;
}

static ft_status decode(const ft_image_source *from)
{
    if (begins_with(from, "\x89PNG\r\n\x1a\n", 8))
        return ft_image_decode_png(from);
    if (begins_with(from, "\xff\xd8\xff", 3))
        return ft_image_decode_jpeg(from);
    return ft_fail(from->err, FT_EUNSUPPORTED, "%s: is neither a PNG nor a JPEG image", from->what);
}

ft_status ft_image_decode(ft_image *out, const void *data, size_t bytes, const char *what,
                          size_t most, ft_error *err)
{
    *out = (ft_image){ 0 };
    ft_image_source from = { data, bytes, most, what, out, err };
    ft_status status = decode(&from);
    if (status != FT_OK)
        ft_image_fini(out);
    return status;
}

/* ---- Files -------------------------------------------------------------------------------- */

enum { PIECE = 1 << 16, MOST_BYTES = 1 << 29 };

static ft_status read_all(ft_text *out, FILE *file, const char *path, ft_error *err)
{
    size_t got = 1;
    while (got > 0 && out->bytes <= MOST_BYTES) {
        if (!ft_text_reserve(out, PIECE))
            return ft_fail(err, FT_ENOMEM, "%s: no memory", path);
        got = fread(out->data + out->bytes, 1, PIECE, file);
        out->bytes += got;
    }
    if (ferror(file))
        return ft_fail_errno(err, "%s: cannot read", path);
    if (got > 0)
        return ft_fail(err, FT_ELIMIT, "%s: is larger than the %d MB that images may have", path,
                       MOST_BYTES >> 20);
    return FT_OK;
}

ft_status ft_image_read(ft_image *out, const char *path, ft_error *err)
{
    ft_text text = { 0 };
    FILE *file = fopen(path, "rb");
    *out = (ft_image){ 0 };
    if (file == NULL)
        return ft_fail_errno(err, "%s: cannot open", path);
    ft_status status = read_all(&text, file, path, err);
    fclose(file);
    if (status == FT_OK)
        status = ft_image_decode(out, text.data, text.bytes, path, FT_IMAGE_MOST_PIXELS, err);
    ft_text_fini(&text);
    return status;
}
