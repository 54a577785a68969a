/*
 * pixels.h - validation of pixel_values [images, channels, height, width], F32.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_MODEL_PIXELS_H
#define FT_RUNTIME_MODEL_PIXELS_H

#include "runtime/graph/model_config.h"

/* The input of vision models. */
#define FT_PIXEL_VALUES "pixel_values"

/* Check dtype, shape (at least one image) and finite values; `name` starts the error message. */
FT_MUST_USE ft_status ft_pixels_check(const ft_config *config, const ft_tensor *tensor,
                                      const char *name, ft_error *err);

#endif
