/*
 * tensor.h - names and sizes of dtypes and layouts, access to tensor elements.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TENSOR_H
#define FT_RUNTIME_TENSOR_H

#include "runtime/ft.h"

#include <string.h>

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* "row", "col32", "col4_4r2_8c", "col32_2r_4r4". */
const char *ft_layout_name(ft_layout layout);

/* Inverses of ft_dtype_name and ft_layout_name; false for an unknown name. */
bool ft_dtype_parse(const char *name, ft_dtype *out);
bool ft_layout_parse(const char *name, ft_layout *out);

/* Write "[768, 3072]" into `text` and return it.  Dimensions beyond FT_MAX_DIMS become "...". */
enum { FT_SHAPE_TEXT = 192 };
char *ft_shape_text(char text[FT_SHAPE_TEXT], int ndim, const int64_t *dim);

/* Element i of an I32 or I64 tensor, or (second function) also of F32; data may be unaligned. */
static inline int64_t ft_tensor_get_i64(const ft_tensor *tensor, size_t i)
{
    int32_t as_i32;
    int64_t as_i64;
    if (tensor->dtype == FT_I64) {
        memcpy(&as_i64, (const char *) tensor->data + i * sizeof as_i64, sizeof as_i64);
        return as_i64;
    }
    memcpy(&as_i32, (const char *) tensor->data + i * sizeof as_i32, sizeof as_i32);
    return as_i32;
}

float ft_tensor_get_f32(const ft_tensor *tensor, size_t i);

#pragma GCC visibility pop

#endif
