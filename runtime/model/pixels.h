/*
 * pixels.h - images as callers give them: [images, channels, height, width] in float.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_MODEL_PIXELS_H
#define FT_RUNTIME_MODEL_PIXELS_H

#include "runtime/graph/model_config.h"

/* The name of the one input of models that read images. */
#define FT_PIXEL_VALUES "pixel_values"

/* Whether a tensor holds images that the model reads, at least one; `what` opens the error text. */
FT_MUST_USE ft_status ft_pixels_check(const ft_config *config, const ft_tensor *tensor,
                                      const char *what, ft_error *err);

#endif
