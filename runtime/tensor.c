/*
 * tensor.c - names and sizes of dtypes and layouts, shapes as text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tensor.h"

#include "runtime/mem.h"

#include <inttypes.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
} dtypes[] = {
    [FT_F32] = { "F32", 4 },   [FT_F16] = { "F16", 2 }, [FT_BF16] = { "BF16", 2 },
    [FT_F64] = { "F64", 8 },   [FT_I8] = { "I8", 1 },   [FT_I16] = { "I16", 2 },
    [FT_I32] = { "I32", 4 },   [FT_I64] = { "I64", 8 }, [FT_U8] = { "U8", 1 },
    [FT_BOOL] = { "BOOL", 1 }, [FT_U4] = { "U4", 0 },
};

static const char *const layouts[] = {
    [FT_ROW] = "row",
    [FT_COL32] = "col32",
    [FT_COL4_4R2_8C] = "col4_4r2_8c",
    [FT_COL32_2R_4R4] = "col32_2r_4r4",
    [FT_PANEL32] = "panel32",
};

const char *ft_dtype_name(ft_dtype dtype)
{
    return (size_t) dtype < FT_COUNT(dtypes) ? dtypes[dtype].name : NULL;
}

size_t ft_dtype_size(ft_dtype dtype)
{
    return (size_t) dtype < FT_COUNT(dtypes) ? dtypes[dtype].size : 0;
}

const char *ft_layout_name(ft_layout layout)
{
    return (size_t) layout < FT_COUNT(layouts) ? layouts[layout] : NULL;
}

bool ft_dtype_parse(const char *name, ft_dtype *out)
{
    for (size_t i = 0; i < FT_COUNT(dtypes); i++)
        if (strcmp(dtypes[i].name, name) == 0) {
            *out = (ft_dtype) i;
            return true;
        }
    return false;
}

bool ft_layout_parse(const char *name, ft_layout *out)
{
    for (size_t i = 0; i < FT_COUNT(layouts); i++)
        if (strcmp(layouts[i], name) == 0) {
            *out = (ft_layout) i;
            return true;
        }
    return false;
}

size_t ft_tensor_numel(const ft_tensor *tensor)
{
    size_t count = 1;
    if (tensor == NULL || tensor->ndim < 0 || tensor->ndim > FT_MAX_DIMS)
        return 0;
    for (int i = 0; i < tensor->ndim; i++)
        if (tensor->dim[i] < 0 || !ft_checked_mul(count, (size_t) tensor->dim[i], &count))
            return 0;
    return count;
}

size_t ft_tensor_bytes(const ft_tensor *tensor)
{
    size_t bytes;
    if (tensor == NULL ||
        !ft_checked_mul(ft_tensor_numel(tensor), ft_dtype_size(tensor->dtype), &bytes))
        return 0;
    return bytes;
}

char *ft_shape_text(char text[FT_SHAPE_TEXT], int ndim, const int64_t *dim)
{
    size_t used = (size_t) snprintf(text, FT_SHAPE_TEXT, "[");
    for (int i = 0; i < ndim && i < FT_MAX_DIMS && used < FT_SHAPE_TEXT; i++)
        used += (size_t) snprintf(text + used, FT_SHAPE_TEXT - used, "%s%" PRId64, i ? ", " : "",
                                  dim[i]);
    if (used < FT_SHAPE_TEXT)
        snprintf(text + used, FT_SHAPE_TEXT - used, "%s]", ndim > FT_MAX_DIMS ? ", ..." : "");
    return text;
}

float ft_tensor_get_f32(const ft_tensor *tensor, size_t i)
{
    float as_f32;
    if (tensor->dtype != FT_F32)
        return (float) ft_tensor_get_i64(tensor, i);
    memcpy(&as_f32, (const char *) tensor->data + i * sizeof as_f32, sizeof as_f32);
    return as_f32;
}
