/*
 * image.h - decode PNG and JPEG files to 8-bit RGB.
 *
 * Metadata is not applied: neither gamma nor colour profiles nor orientation, and alpha is dropped.
 * Grey becomes three equal values, and 16-bit samples keep their high 8 bits. The libraries that
 * models were trained with do the same.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_DATA_IMAGES_IMAGE_H
#define FT_RUNTIME_DATA_IMAGES_IMAGE_H

#include "runtime/ft.h"

/* Zero-initialized means empty. */
typedef struct ft_image {
    size_t width, height;
    uint8_t *rgb; /* [height, width, 3]; freed by ft_image_fini() */
} ft_image;

/* Limits; larger files are rejected. */
enum {
    FT_IMAGE_MAX_BYTES = 1 << 27,  /* of the file */
    FT_IMAGE_MAX_PIXELS = 1 << 26, /* 64 million */
    FT_IMAGE_MAX_SIDE = 1 << 16,   /* pixels */
    FT_IMAGE_MAX_MEMORY = 224 << 20,
};

/* Whether the file begins as a PNG or JPEG that this build reads; errors as below. */
FT_MUST_USE ft_status ft_image_check(const char *path, ft_error *err);

/* Decode a file. Errors name it; FT_EUNSUPPORTED for formats other than PNG and JPEG. */
FT_MUST_USE ft_status ft_image_read(ft_image *out, const char *path, ft_error *err);

/*
 * The same from memory; `label` is the prefix of error messages. More than `max_pixels` pixels are
 * FT_ELIMIT.
 */
FT_MUST_USE ft_status ft_image_decode(ft_image *out, const void *data, size_t bytes,
                                      const char *label, size_t max_pixels, ft_error *err);

void ft_image_fini(ft_image *image);

/* Resampling filters. */
typedef enum ft_resample {
    FT_RESAMPLE_LANCZOS = 1, /* values as in preprocessor_config.json */
    FT_RESAMPLE_BILINEAR = 2,
    FT_RESAMPLE_BICUBIC = 3,
} ft_resample;

/* Resize an image; the caller frees *out. */
FT_MUST_USE ft_status ft_image_resize(ft_image *out, const ft_image *image, size_t width,
                                      size_t height, ft_resample filter, ft_error *err);

#endif
