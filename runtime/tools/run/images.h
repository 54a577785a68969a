/*
 * images.h - image files become what a model reads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_RUN_IMAGES_H
#define FT_RUNTIME_TOOLS_RUN_IMAGES_H

#include "runtime/data/dataset.h"
#include "runtime/model/model.h"

/*
 * Decode images as their model's preprocessor_config.json says.  FT_ESHAPE: one does not become as
 * large as the model reads them; FT_EUNSUPPORTED: the model reads none, or has no such file.
 */
FT_MUST_USE ft_status ft_images_read(ft_dataset *out, const ft_model *model,
                                     const char *const *path, size_t count, ft_error *err);

#endif
