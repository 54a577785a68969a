/*
 * image.h - pictures from files: PNG and JPEG, decoded to 8 bits of red, green and blue.
 *
 * What a file says beside its samples is not applied: neither gamma nor colour profiles nor an
 * orientation, and what is transparent shows what lies under it.  Grey becomes three equal numbers,
 * and of 16 bits the higher 8 are taken.  So do the libraries that models were trained with.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_DATA_IMAGES_IMAGE_H
#define FT_RUNTIME_DATA_IMAGES_IMAGE_H

#include "runtime/ft.h"

/* All zero is none. */
typedef struct ft_image {
    size_t width, height;
    uint8_t *rgb; /* [height, width, 3]; free with ft_image_fini() */
} ft_image;

/* What files may ask for; more is refused. */
enum {
    FT_IMAGE_MOST_BYTES = 1 << 27,  /* of the file */
    FT_IMAGE_MOST_PIXELS = 1 << 26, /* 64 million */
    FT_IMAGE_MOST_SIDE = 1 << 16,   /* pixels */
    FT_IMAGE_MOST_MEMORY = 224 << 20,
};

/* Decode a file.  Errors name it; FT_EUNSUPPORTED for what is neither PNG nor JPEG. */
FT_MUST_USE ft_status ft_image_read(ft_image *out, const char *path, ft_error *err);

/* The same from memory; `what` opens error texts.  More than `most` pixels are FT_ELIMIT. */
FT_MUST_USE ft_status ft_image_decode(ft_image *out, const void *data, size_t bytes,
                                      const char *what, size_t most, ft_error *err);

void ft_image_fini(ft_image *image);

/* How pixels in between are computed. */
typedef enum ft_resample {
    FT_RESAMPLE_LANCZOS = 1, /* the numbers that preprocessor_config.json has for them */
    FT_RESAMPLE_BILINEAR = 2,
    FT_RESAMPLE_BICUBIC = 3,
} ft_resample;

/* An image of another size. */
FT_MUST_USE ft_status ft_image_resize(ft_image *out, const ft_image *image, size_t width,
                                      size_t height, ft_resample how, ft_error *err);

#endif
