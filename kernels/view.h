/*
 * view.h - the memory of a value while an operation runs, on any device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_VIEW_H
#define FT_KERNELS_VIEW_H

#include "runtime/ft.h"

/* Row-major, `cols` elements per row, no padding.  The pointers are those of the device. */
typedef struct ft_view {
    void *data; /* NULL: absent */
    size_t rows, cols;
    ft_dtype dtype;
    float scale;   /* of all rows; 0: float values */
    float *scales; /* [rows] of dynamically quantized values; NULL for a static scale */
} ft_view;

#endif
