/*
 * f32_impl.h - the body of f32_*.c: the kernels of one instruction set.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cpu/gemm/f32/f32_load.h"
#include "kernels/cpu/gemm/f32/f32_packed_impl.h"

/* The largest register tile whose accumulators fit the registers. */
enum {
    TILE_ROWS = LANES == 16 ? 6
                : LANES > 1 ? 3
                            : 1,
    TILE_COLS = LANES == 16 ? 4
                : LANES > 1 ? 2
                            : 1,
};

/*
 * A register tile. Columns beyond the end of the matrix repeat the last one; their results are
 * ignored.
 */
typedef struct tile_state {
    const float *x[TILE_ROWS];
    const void *w[TILE_COLS];
    size_t prefetch_offset; /* bytes from a row of w to the row in the same position of the next
                               tile */
    vf sum[TILE_ROWS][TILE_COLS][VECTORS];
} tile_state;

/* Starts the tile at column `first`. */
FT_INLINE void tile_begin(tile_state *s, const ft_float_tile *t, size_t first, size_t rows,
                          ft_dtype dtype)
{
    size_t n_left = t->cols - first, w_stride = t->w_stride * dtype_bytes(dtype);
    const char *w = (const char *) t->w + first * w_stride;
    FT_UNROLL
    for (size_t col = 0; col < TILE_COLS; col++) {
        s->w[col] = w + (col < n_left ? col : n_left - 1) * w_stride;
        FT_UNROLL
        for (size_t row = 0; row < rows; row++) {
            FT_UNROLL
            for (size_t v = 0; v < VECTORS; v++)
                s->sum[row][col][v] = vf_set(0.0f);
        }
    }
    s->prefetch_offset = TILE_COLS * w_stride;
    FT_UNROLL
    for (size_t row = 0; row < rows; row++)
        s->x[row] = t->x + row * t->x_stride;
}

FT_INLINE void multiply_lanes(tile_state *s, size_t k_offset, size_t rows, ft_dtype dtype)
{
    FT_UNROLL
    for (size_t v = 0; v < VECTORS; v++) {
        vf w[TILE_COLS];
        FT_UNROLL
        for (size_t col = 0; col < TILE_COLS; col++) {
            w[col] = load_as_float(s->w[col], k_offset + v * LANES, dtype);
            if (v == 0) /* prefetch the same part of the next tile, row by row */
                __builtin_prefetch((const char *) s->w[col] + s->prefetch_offset +
                                       k_offset * dtype_bytes(dtype),
                                   0, 2);
        }
        FT_UNROLL
        for (size_t row = 0; row < rows; row++) {
            vf x = vf_load(s->x[row] + k_offset + v * LANES);
            FORCE_REGISTER(x);
            FT_UNROLL
            for (size_t col = 0; col < TILE_COLS; col++)
                s->sum[row][col][v] = vf_fma(x, w[col], s->sum[row][col][v]);
        }
    }
}

FT_INLINE void reduce_row(float acc[TILE_COLS], const vf lanes[TILE_COLS][VECTORS])
{
#if defined __AVX512F__ && !defined FT_SIMD_SCALAR
    vf_reduce_add_x4(acc, lanes[0][0], lanes[1][0], lanes[2][0], lanes[3][0]);
#elif (defined __AVX2__ || defined __aarch64__) && !defined FT_SIMD_SCALAR
    vf_reduce_add_x2(acc, lanes[0], lanes[1]);
#else
    acc[0] = vf_reduce_add(lanes[0]);
#endif
}

FT_INLINE void tile_store(const tile_state *s, const ft_float_tile *t, size_t first, size_t rows)
{
    FT_UNROLL
    for (size_t row = 0; row < rows; row++) {
        float acc[TILE_COLS], *to = t->acc + row * t->acc_stride + first;
        reduce_row(acc, s->sum[row]);
        if (t->accumulate) {
            FT_UNROLL
            for (size_t col = 0; col < TILE_COLS; col++)
                acc[col] = to[col] + acc[col];
        }
        memcpy(to, acc, sizeof acc);
    }
}

FT_INLINE void gemm_tile_rows(const ft_float_tile *t, size_t rows, ft_dtype dtype)
{
    for (size_t col = 0; col < t->cols; col += TILE_COLS) {
        tile_state s;
        tile_begin(&s, t, col, rows, dtype);
        for (size_t k_offset = 0; k_offset < t->k; k_offset += FT_FLOAT_LANES)
            multiply_lanes(&s, k_offset, rows, dtype);
        tile_store(&s, t, col, rows);
    }
}

/* ---- P V ---------------------------------------------------------------------------------- */

/* A strip of y, `units` times FT_FLOAT_LANES columns wide, over all keys. */
FT_INLINE void weighted_sum_strip(const ft_float_weighted_sum *m, size_t first, size_t rows,
                                  size_t units, ft_dtype dtype)
{
    vf sum[TILE_ROWS][TILE_COLS * VECTORS];
    FT_UNROLL
    for (size_t row = 0; row < rows; row++) {
        FT_UNROLL
        for (size_t i = 0; i < units * VECTORS; i++)
            sum[row][i] = vf_load(m->y + row * m->y_stride + first + i * LANES);
    }
    for (size_t key = 0; key < m->keys; key++) {
        vf v[TILE_COLS * VECTORS];
        FT_UNROLL
        for (size_t i = 0; i < units * VECTORS; i++)
            v[i] = load_as_float(m->v, key * m->v_stride + first + i * LANES, dtype);
        FT_UNROLL
        for (size_t row = 0; row < rows; row++) {
            vf p = vf_set(m->p[row * m->p_stride + key]);
            FT_UNROLL
            for (size_t i = 0; i < units * VECTORS; i++)
                sum[row][i] = vf_fma(p, v[i], sum[row][i]);
        }
    }
    FT_UNROLL
    for (size_t row = 0; row < rows; row++) {
        FT_UNROLL
        for (size_t i = 0; i < units * VECTORS; i++)
            vf_store(m->y + row * m->y_stride + first + i * LANES, sum[row][i]);
    }
}

FT_INLINE void weighted_sum_rows(const ft_float_weighted_sum *m, size_t rows, ft_dtype dtype)
{
    size_t col = 0;
    for (; col + TILE_COLS * FT_FLOAT_LANES <= m->cols; col += TILE_COLS * FT_FLOAT_LANES)
        weighted_sum_strip(m, col, rows, TILE_COLS, dtype);
    for (; col < m->cols; col += FT_FLOAT_LANES)
        weighted_sum_strip(m, col, rows, 1, dtype);
}

/* ---- One function per number of rows and operand type --------------------------------------- */

enum { OPERAND_F32, OPERAND_F16, OPERAND_BF16, N_OPERANDS };

#define TILE_FUNCTION(rows, name, dtype)                                                           \
    static void multiply_##name##_##rows(const ft_float_tile *t)                                   \
    {                                                                                              \
        gemm_tile_rows(t, rows, dtype);                                                            \
    }
#define WEIGHTED_SUM_FUNCTION(rows, name, dtype)                                                   \
    static void mix_##name##_##rows(const ft_float_weighted_sum *m)                                \
    {                                                                                              \
        weighted_sum_rows(m, rows, dtype);                                                         \
    }
#define FUNCTIONS(rows)                                                                            \
    TILE_FUNCTION(rows, f32, FT_F32)                                                               \
    TILE_FUNCTION(rows, f16, FT_F16)                                                               \
    TILE_FUNCTION(rows, bf16, FT_BF16)                                                             \
    WEIGHTED_SUM_FUNCTION(rows, f32, FT_F32)                                                       \
    WEIGHTED_SUM_FUNCTION(rows, f16, FT_F16)                                                       \
    WEIGHTED_SUM_FUNCTION(rows, bf16, FT_BF16)
#define TABLE_ROW(rows)                                                                            \
    {                                                                                              \
        { multiply_f32_##rows, multiply_f16_##rows, multiply_bf16_##rows },                        \
            { mix_f32_##rows, mix_f16_##rows, mix_bf16_##rows },                                   \
    }

FUNCTIONS(1)
#if (defined __AVX2__ || defined __aarch64__) && !defined FT_SIMD_SCALAR
FUNCTIONS(2)
FUNCTIONS(3)
#endif
#if defined __AVX512F__ && !defined FT_SIMD_SCALAR
FUNCTIONS(4)
FUNCTIONS(5)
FUNCTIONS(6)
#endif

static const struct {
    void (*gemm_tile[N_OPERANDS])(const ft_float_tile *);
    void (*weighted_sum[N_OPERANDS])(const ft_float_weighted_sum *);
} functions[TILE_ROWS] = {
    TABLE_ROW(1),
#if (defined __AVX2__ || defined __aarch64__) && !defined FT_SIMD_SCALAR
    TABLE_ROW(2), TABLE_ROW(3),
#endif
#if defined __AVX512F__ && !defined FT_SIMD_SCALAR
    TABLE_ROW(4), TABLE_ROW(5), TABLE_ROW(6),
#endif
};

static int operand_of(ft_dtype dtype)
{
    return dtype == FT_F16 ? OPERAND_F16 : dtype == FT_BF16 ? OPERAND_BF16 : OPERAND_F32;
}

static void gemm_tile(const ft_float_tile *t)
{
    functions[t->rows - 1].gemm_tile[operand_of(t->w_dtype)](t);
}

static void weighted_sum(const ft_float_weighted_sum *m)
{
    functions[m->rows - 1].weighted_sum[operand_of(m->v_dtype)](m);
}

#define FT_FLOAT_KERNELS                                                                           \
    {                                                                                              \
        .rows = TILE_ROWS, .cols = TILE_COLS, .gemm_tile = gemm_tile,                              \
        .weighted_sum = weighted_sum, .packed_rows = PACKED_ROWS, .packed_cols = PACKED_COLS,      \
        .gemm_packed_tile = gemm_packed_tile, .pack = pack, .transpose = transpose                 \
    }
