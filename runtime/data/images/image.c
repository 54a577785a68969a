/*
 * image.c - read and allocate for the decoders within the limits.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/images/decoder.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>

ft_status ft_image_source_read(ft_image_source *from, void *to, size_t bytes, size_t *got)
{
    *got = fread(to, 1, bytes, from->file);
    from->read += *got;
    if (*got < bytes && ferror(from->file))
        return ft_fail_errno(from->err, "%s: cannot read", from->label);
    if (from->read > FT_IMAGE_MAX_BYTES)
        return ft_fail(from->err, FT_ELIMIT, "%s: is larger than %d MiB, the limit for images",
                       from->label, FT_IMAGE_MAX_BYTES >> 20);
    return FT_OK;
}

ft_status ft_image_check_memory(const ft_image_source *from, size_t bytes)
{
    if (bytes <= FT_IMAGE_MAX_MEMORY)
        return FT_OK;
    return ft_fail(from->err, FT_ELIMIT, "%s: decoding needs %zu MiB, the limit is %d", from->label,
                   bytes >> 20, FT_IMAGE_MAX_MEMORY >> 20);
}

ft_status ft_image_source_alloc(const ft_image_source *from, size_t width, size_t height)
{
    size_t pixels;
    if (width == 0 || height == 0)
        return ft_fail(from->err, FT_EFORMAT, "%s: %zu x %zu pixels", from->label, width, height);
    if (width > FT_IMAGE_MAX_SIDE || height > FT_IMAGE_MAX_SIDE)
        return ft_fail(from->err, FT_ELIMIT,
                       "%s: %zu x %zu pixels, at most %d per side are supported", from->label,
                       width, height, FT_IMAGE_MAX_SIDE);
    if (!ft_checked_mul(width, height, &pixels) || pixels > from->max_pixels)
        return ft_fail(from->err, FT_ELIMIT, "%s: %zu x %zu pixels, at most %zu are supported",
                       from->label, width, height, from->max_pixels);
    from->out->width = width;
    from->out->height = height;
    from->out->rgb = ft_calloc(pixels, 3);
    return from->out->rgb != NULL
               ? FT_OK
               : ft_fail(from->err, FT_ENOMEM, "%s: no memory for %zu x %zu pixels", from->label,
                         width, height);
}

void ft_image_fini(ft_image *image)
{
    free(image->rgb);
    *image = (ft_image){ 0 };
}
