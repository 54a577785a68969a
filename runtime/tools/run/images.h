/*
 * images.h - read image files and preprocess them to pixel values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_RUN_IMAGES_H
#define FT_RUNTIME_TOOLS_RUN_IMAGES_H

#include "runtime/data/dataset.h"
#include "runtime/model/model.h"

/*
 * Decode and preprocess images as preprocessor_config.json says.  FT_ESHAPE: a preprocessed image
 * has another size than the model's input; FT_EUNSUPPORTED: no vision model, or no such file.
 */
FT_MUST_USE ft_status ft_images_read(ft_dataset *out, const ft_model *model,
                                     const char *const *path, size_t count, ft_error *err);

#endif
