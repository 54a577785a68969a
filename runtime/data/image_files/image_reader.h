/*
 * image_reader.h - image files, or their pixels, as the input of a vision model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_DATA_IMAGE_FILES_IMAGE_READER_H
#define FT_RUNTIME_DATA_IMAGE_FILES_IMAGE_READER_H

#include "runtime/data/images/processor.h"
#include "runtime/model/model.h"

#pragma GCC visibility push(default) /* of the library of images */

/* Preprocesses images as preprocessor_config.json says.  The model must last as long. */
typedef struct ft_image_reader {
    const ft_model *model;
    ft_image_processor processor;
} ft_image_reader;

/* FT_EUNSUPPORTED: no vision model, not 3 channels, or no preprocessor_config.json. */
FT_MUST_USE ft_status ft_image_reader_init(ft_image_reader *out, const ft_model *model,
                                           ft_error *err);

/*
 * Write the pixel values [3, height, width] of an image; `label` is the prefix of error messages.
 * FT_ESHAPE: preprocessed it has another size than the model's input.
 */
FT_MUST_USE ft_status ft_image_reader_convert(const ft_image_reader *reader, const ft_image *image,
                                              const char *label, float *out, ft_error *err);

/* The same for a PNG or JPEG file. */
FT_MUST_USE ft_status ft_image_reader_read(const ft_image_reader *reader, const char *path,
                                           float *out, ft_error *err);

#pragma GCC visibility pop

#endif
