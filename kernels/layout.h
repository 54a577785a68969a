/*
 * layout.h - where element (row, column) of an int8 matrix lies, for the orders of cuBLASLt.
 *
 * The same inline code serves host and device.  Offsets are bytes from the start of the matrix;
 * the padded sizes below are part of each layout, pad elements are zero.
 * Source: cuBLASLt manual, "cublasLtOrder_t"; each formula was checked against
 * cublasLtMatrixTransform.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_LAYOUT_H
#define FT_KERNELS_LAYOUT_H

#include "runtime/ft.h"

#ifdef __CUDACC__
#define FT_HOST_DEVICE __host__ __device__ __forceinline__ static
#else
#define FT_HOST_DEVICE static inline
#endif

/* COL4_4R2_8C pads rows to 8 and columns to 32; COL32 columns to 32; COL32_2R_4R4 rows to 32 too.
 */
FT_HOST_DEVICE size_t ft_layout_rows(ft_layout layout, size_t rows)
{
    switch (layout) {
    case FT_COL4_4R2_8C:
        return (rows + 7) / 8 * 8;
    case FT_COL32_2R_4R4:
        return (rows + 31) / 32 * 32;
    case FT_ROW:
    case FT_COL32:
        break;
    }
    return rows;
}

FT_HOST_DEVICE size_t ft_layout_cols(ft_layout layout, size_t cols)
{
    return layout == FT_ROW ? cols : (cols + 31) / 32 * 32;
}

/* Bytes of an int8 matrix with its padding; the caller has checked that this does not overflow. */
FT_HOST_DEVICE size_t ft_layout_bytes(ft_layout layout, size_t rows, size_t cols)
{
    return ft_layout_rows(layout, rows) * ft_layout_cols(layout, cols);
}

/*
 * COL4_4R2_8C: blocks of 32 columns; in a block, tiles of 8 rows (256 bytes); in a tile first the
 * even rows, then the odd ones (128 bytes each); in a half, runs of 8 columns (32 bytes), each as
 * two groups of 4 columns; in a group 4 rows of 4 bytes.
 */
FT_HOST_DEVICE size_t ft_offset_col4(size_t row, size_t col, size_t padded_rows)
{
    return (col >> 5) * 32 * padded_rows + (row >> 3) * 256 + (row & 1) * 128 +
           ((col & 31) >> 3) * 32 + (((col & 7) >> 2) * 4 + ((row & 7) >> 1)) * 4 + (col & 3);
}

FT_HOST_DEVICE size_t ft_offset(ft_layout layout, size_t row, size_t col, size_t rows, size_t cols)
{
    switch (layout) {
    case FT_ROW:
        break;
    case FT_COL32:
        return (col >> 5) * 32 * rows + row * 32 + (col & 31);
    case FT_COL4_4R2_8C:
        return ft_offset_col4(row, col, ft_layout_rows(layout, rows));
    case FT_COL32_2R_4R4: {
        size_t r = row & 31;
        return (col >> 5) * 32 * ft_layout_rows(layout, rows) + (row >> 5) * 1024 +
               (((((r & 7) >> 1) * 4) + (r >> 3)) * 2 + (r & 1)) * 32 + (col & 31);
    }
    }
    return row * cols + col;
}

#endif
