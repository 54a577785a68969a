/*
 * layout.h - memory layouts of quantized matrices: the int8 orders of cuBLASLt, and our own panels
 * of 4-bit and 8-bit values.
 *
 * Host and device use the same inline code.  Offsets are bytes from the start of the matrix.  The
 * padded sizes below are part of each layout; padding elements are zero.
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

enum { FT_PANEL_ROWS = 32 }; /* rows of a panel of PANEL32 */

/*
 * All layouts but ROW pad columns to a multiple of 32.  COL4_4R2_8C pads rows to a multiple of 8,
 * COL32_2R_4R4 and PANEL32 to a multiple of 32.
 */
FT_HOST_DEVICE size_t ft_layout_rows(ft_layout layout, size_t rows)
{
    switch (layout) {
    case FT_COL4_4R2_8C:
        return (rows + 7) / 8 * 8;
    case FT_COL32_2R_4R4:
    case FT_PANEL32:
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

/* Bytes of an int8 matrix with padding; the caller has checked that this does not overflow. */
FT_HOST_DEVICE size_t ft_layout_bytes(ft_layout layout, size_t rows, size_t cols)
{
    return ft_layout_rows(layout, rows) * ft_layout_cols(layout, cols);
}

/*
 * COL4_4R2_8C: panels of 32 columns; in a panel, tiles of 8 rows (256 bytes); in a tile first the
 * even rows, then the odd rows (128 bytes each); in these, slices of 8 columns (32 bytes), each as
 * two groups of 4 columns; in a group, 4 rows of 4 bytes.
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
    case FT_PANEL32: /* below */
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

/*
 * PANEL32, for values of 4 or 8 bits: a panel has 32 rows.  Its tiles have 16 bytes per row: 32
 * columns of 4 bits or 16 of 8 bits.  A tile consists of four lines, a line of 32 words of 32 bits,
 * word r for row r.  Line t has columns 2t and 2t + 1 of every 8 columns.  A word of 8-bit values
 * has its columns in order.  A word of 4-bit values has first the even columns, from the low bits
 * on, then the odd columns.
 *
 * With this layout, a lane of a warp that loads 16 bytes gets four rows of exactly the columns of
 * its mma.m16n8k16 fragment.  Neighbouring columns are 16 bits apart, so that one mask yields the
 * bits of an f16 pair.  On the CPU, a vector register gets the same columns of 16 rows, and one
 * shift moves their values to the low bits of each lane.
 */
FT_HOST_DEVICE size_t ft_panel_bytes(size_t rows, size_t cols, int bits)
{
    return ft_layout_rows(FT_PANEL32, rows) * ft_layout_cols(FT_PANEL32, cols) / 8 * (size_t) bits;
}

/* Index of the word that holds an element. */
FT_HOST_DEVICE size_t ft_panel_word(size_t row, size_t col, size_t cols, int bits)
{
    size_t block_cols = bits == 4 ? 32 : 16, blocks = ft_layout_cols(FT_PANEL32, cols) / block_cols;
    return ((row >> 5) * blocks + col / block_cols) * 128 + ((col & 7) >> 1) * 32 + (row & 31);
}

/* Its lowest bit in that word. */
FT_HOST_DEVICE int ft_panel_shift(size_t col, int bits)
{
    return bits == 4 ? (int) ((col & 1) * 16 + ((col & 31) >> 3) * 4)
                     : (int) (((col & 15) >> 3) * 16 + (col & 1) * 8);
}

FT_HOST_DEVICE uint32_t ft_panel_value(const uint32_t *panels, size_t row, size_t col, size_t cols,
                                       int bits)
{
    return panels[ft_panel_word(row, col, cols, bits)] >> ft_panel_shift(col, bits) &
           ((1u << bits) - 1);
}

#endif
