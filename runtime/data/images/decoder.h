/*
 * decoder.h - shared by the decoders of image formats; private to runtime/data/images/.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_DATA_IMAGES_DECODER_H
#define FT_RUNTIME_DATA_IMAGES_DECODER_H

#include "runtime/data/images/image.h"

enum { FT_IMAGE_SIGNATURE = 8 };

/* An encoded image file and its decoded output. */
typedef struct ft_image_source {
    FILE *file; /* positioned after `signature` */
    unsigned char signature[FT_IMAGE_SIGNATURE];
    size_t read;       /* bytes read so far */
    size_t max_pixels; /* maximum number of pixels */
    const char *label; /* prefix of error messages */
    ft_image *out;
    ft_error *err;
} ft_image_source;

/* Read the next bytes: `bytes`, or fewer at the end of the file. FT_EIO; FT_ELIMIT. */
FT_MUST_USE ft_status ft_image_source_read(ft_image_source *from, void *to, size_t bytes,
                                           size_t *got);

/* Allocate the pixels; on failure the error is set. */
FT_MUST_USE ft_status ft_image_source_alloc(const ft_image_source *from, size_t width,
                                            size_t height);

/*
 * Reject a file that needs more than FT_IMAGE_MAX_MEMORY bytes: for the samples as stored, or for
 * coefficients in addition to the pixels.
 */
FT_MUST_USE ft_status ft_image_check_memory(const ft_image_source *from, size_t bytes);

FT_MUST_USE ft_status ft_image_decode_png(ft_image_source *from);
FT_MUST_USE ft_status ft_image_decode_jpeg(ft_image_source *from);

#endif
