/*
 * pixels.c - validation of pixel_values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/model/pixels.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"

#include <math.h>

static ft_status fail_shape(const ft_config *config, const ft_tensor *tensor, const char *name,
                            ft_error *err)
{
    char found[FT_SHAPE_TEXT];
    ft_shape_text(found, tensor->ndim, tensor->dim);
    return ft_fail(err, FT_ESHAPE, "%s: shape %s, expected [images, %d, %d, %d]", name, found,
                   config->channels, config->image_height, config->image_width);
}

/* NaN and infinity have no int8 value. */
static ft_status check_values(const ft_tensor *tensor, const char *name, ft_error *err)
{
    const float *x = tensor->data;
    size_t count = ft_tensor_numel(tensor);
    for (size_t i = 0; i < count; i++)
        if (!isfinite(x[i])) {
            size_t width = (size_t) tensor->dim[3], height = (size_t) tensor->dim[2];
            size_t channels = (size_t) tensor->dim[1];
            return ft_fail(err, FT_EARG, "%s[%zu][%zu][%zu][%zu]: %g, expected a finite value",
                           name, i / width / height / channels, i / width / height % channels,
                           i / width % height, i % width, (double) x[i]);
        }
    return FT_OK;
}

ft_status ft_pixels_check(const ft_config *config, const ft_tensor *tensor, const char *name,
                          ft_error *err)
{
    const int64_t image[] = { config->channels, config->image_height, config->image_width };
    if (tensor->dtype != FT_F32)
        return ft_fail(err, FT_EARG, "%s: dtype %s, expected F32", name,
                       ft_dtype_name(tensor->dtype));
    bool fits = tensor->ndim == 4 && tensor->dim[0] > 0;
    for (size_t i = 0; i < FT_COUNT(image) && fits; i++)
        fits = tensor->dim[1 + i] == image[i];
    return fits ? check_values(tensor, name, err) : fail_shape(config, tensor, name, err);
}
