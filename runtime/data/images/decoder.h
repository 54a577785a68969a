/*
 * decoder.h - what the decoders of image formats share; for runtime/images/ alone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_DATA_IMAGES_DECODER_H
#define FT_RUNTIME_DATA_IMAGES_DECODER_H

#include "runtime/data/images/image.h"

enum { FT_IMAGE_SIGNATURE = 8 };

/* A file, and where its pixels go. */
typedef struct ft_image_source {
    FILE *file; /* whose first bytes are `signature` */
    unsigned char signature[FT_IMAGE_SIGNATURE];
    size_t read;      /* bytes so far */
    size_t most;      /* pixels that it may have */
    const char *what; /* opens error texts */
    ft_image *out;
    ft_error *err;
} ft_image_source;

/* The next bytes: as many, or those up to the file's end.  FT_EIO; FT_ELIMIT. */
FT_MUST_USE ft_status ft_image_take(ft_image_source *from, void *to, size_t bytes, size_t *got);

/* Make room for the pixels; on failure the error is told. */
FT_MUST_USE ft_status ft_image_begin(const ft_image_source *from, size_t width, size_t height);

/*
 * Refuse a file that would take more bytes than FT_IMAGE_MOST_MEMORY: of samples as they are
 * stored, or of coefficients beside the pixels.
 */
FT_MUST_USE ft_status ft_image_check_memory(const ft_image_source *from, size_t bytes);

FT_MUST_USE ft_status ft_image_decode_png(ft_image_source *from);
FT_MUST_USE ft_status ft_image_decode_jpeg(ft_image_source *from);

#endif
