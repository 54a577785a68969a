/*
 * processor.h - what preprocessor_config.json says: from an image to the numbers that a model
 * reads.
 *
 * Resize, cut out the middle, scale, normalize, each where it is asked for, in this order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_DATA_IMAGES_PROCESSOR_H
#define FT_RUNTIME_DATA_IMAGES_PROCESSOR_H

#include "runtime/data/images/image.h"

typedef struct ft_processor {
    bool resizes, crops;
    size_t width, height; /* resized */
    size_t crop_width, crop_height;
    ft_resample resample;
    float factor;                /* of samples of 0 to 255; 1: they stay so */
    float mean[3], deviation[3]; /* 0 and 1: nothing is normalized */
} ft_processor;

/*
 * Read the text of preprocessor_config.json, `file` by name.  `distilled` says that the model is a
 * DeiT: where the file does not name a processor, the model does, and their defaults differ.
 * FT_EUNSUPPORTED, by its name, for a field that may change the result.
 */
FT_MUST_USE ft_status ft_processor_parse(ft_processor *out, const void *text, size_t bytes,
                                         const char *file, bool distilled, ft_error *err);

/* The size of what it makes of an image. */
void ft_processor_size(const ft_processor *processor, const ft_image *image, size_t *width,
                       size_t *height);

/* Write [3, height, width] floats of that size; `what` opens error texts. */
FT_MUST_USE ft_status ft_processor_run(const ft_processor *processor, const ft_image *image,
                                       const char *what, float *out, ft_error *err);

#endif
