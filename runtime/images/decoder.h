/*
 * decoder.h - what the decoders of image formats share; for runtime/images/ alone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_IMAGES_DECODER_H
#define FT_RUNTIME_IMAGES_DECODER_H

#include "runtime/images/image.h"

/* A file in memory, and where its pixels go. */
typedef struct ft_image_source {
    const unsigned char *data;
    size_t bytes, most; /* of the file; pixels that it may have */
    const char *what;   /* opens error texts */
    ft_image *out;
    ft_error *err;
} ft_image_source;

/* Make room for the pixels; on failure the error is told. */
FT_MUST_USE ft_status ft_image_begin(const ft_image_source *from, size_t width, size_t height);

FT_MUST_USE ft_status ft_image_decode_png(const ft_image_source *from);
FT_MUST_USE ft_status ft_image_decode_jpeg(const ft_image_source *from);

#endif
