/*
 * processor.h - image preprocessing as described by preprocessor_config.json.
 *
 * Resize, center crop, rescale and normalize, each if enabled, in this order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_DATA_IMAGES_PROCESSOR_H
#define FT_RUNTIME_DATA_IMAGES_PROCESSOR_H

#include "runtime/data/images/image.h"

typedef struct ft_image_processor {
    bool do_resize, do_center_crop;
    size_t width, height; /* after resizing */
    size_t crop_width, crop_height;
    ft_resample resample;
    float rescale_factor;  /* multiplier of samples 0 to 255; 1: none */
    float mean[3], std[3]; /* 0 and 1: no normalization */
} ft_image_processor;

/*
 * Parse the text of preprocessor_config.json; `file` is its name in messages. `distilled`: the
 * model is a DeiT. If the file does not name a processor, the model determines it, and their
 * defaults differ. FT_EUNSUPPORTED for a field that may change the result; the message names it.
 */
FT_MUST_USE ft_status ft_image_processor_parse(ft_image_processor *out, const void *text,
                                               size_t bytes, const char *file, bool distilled,
                                               ft_error *err);

/* The output size for an image. */
void ft_image_processor_output_size(const ft_image_processor *processor, const ft_image *image,
                                    size_t *width, size_t *height);

/* Write [3, height, width] floats of that size; `label` is the prefix of error messages. */
FT_MUST_USE ft_status ft_image_processor_run(const ft_image_processor *processor,
                                             const ft_image *image, const char *label, float *out,
                                             ft_error *err);

#endif
