/*
 * f32_impl.h - the body of f32_*.c: a register-tiled float GEMM.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cpu/gemm/f32/f32.h"
#include "kernels/cpu/base/simd.h"

/*
 * Vectors that hold the lanes of one sum; the largest register tile whose accumulators fit the
 * registers.
 */
enum {
    VECTORS = FT_FLOAT_LANES / LANES,
    TILE_ROWS = LANES == 16  ? 6
                : LANES == 8 ? 3
                             : 1,
    TILE_COLS = LANES == 16  ? 4
                : LANES == 8 ? 2
                             : 1,
};

/*
 * Loads each x vector once: gcc otherwise folds the load into every multiply-add, and loads are the
 * bottleneck.
 */
#if defined __AVX2__ && !defined FT_SIMD_SCALAR
#define FORCE_REGISTER(v) __asm__("" : "+v"(v))
#else
#define FORCE_REGISTER(v) (void) (v)
#endif

FT_INLINE vf load_as_float(const void *w, size_t k_offset, ft_dtype dtype)
{
    if (dtype == FT_F16)
        return vf_load_f16((const uint16_t *) w + k_offset);
    if (dtype == FT_BF16)
        return vf_load_bf16((const uint16_t *) w + k_offset);
    return vf_load((const float *) w + k_offset);
}

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

FT_INLINE size_t dtype_bytes(ft_dtype dtype)
{
    return dtype == FT_F32 ? 4 : 2;
}

/* Starts the tile at column `first`. */
FT_INLINE void tile_begin(tile_state *s, const ft_float_tile *t, size_t first, size_t rows,
                          ft_dtype dtype, bool packed)
{
    size_t x_stride = packed ? FT_FLOAT_LANES : t->x_stride;
    size_t w_stride = packed ? FT_FLOAT_LANES : t->w_stride, n_left = t->cols - first;
    size_t padded_k = (t->k + FT_FLOAT_LANES - 1) / FT_FLOAT_LANES * FT_FLOAT_LANES;
    const char *w =
        (const char *) t->w + first * (packed ? padded_k : t->w_stride) * dtype_bytes(dtype);
    FT_UNROLL
    for (size_t col = 0; col < TILE_COLS; col++) {
        s->w[col] = w + (col < n_left ? col : n_left - 1) * w_stride * dtype_bytes(dtype);
        FT_UNROLL
        for (size_t row = 0; row < rows; row++) {
            FT_UNROLL
            for (size_t v = 0; v < VECTORS; v++)
                s->sum[row][col][v] = vf_set(0.0f);
        }
    }
    s->prefetch_offset = TILE_COLS * w_stride * dtype_bytes(dtype);
    FT_UNROLL
    for (size_t row = 0; row < rows; row++)
        s->x[row] = t->x + row * x_stride;
}

/*
 * Offset of element k_offset of an operand's row; in a packed operand the rows of a tile are
 * interleaved.
 */
FT_INLINE size_t operand_offset(size_t k_offset, size_t tile, bool packed)
{
    return packed ? k_offset * tile : k_offset;
}

FT_INLINE void multiply_lanes(tile_state *s, size_t k_offset, size_t rows, ft_dtype dtype,
                              bool packed)
{
    size_t x_at = operand_offset(k_offset, TILE_ROWS, packed),
           w_at = operand_offset(k_offset, TILE_COLS, packed);
    FT_UNROLL
    for (size_t v = 0; v < VECTORS; v++) {
        vf w[TILE_COLS];
        FT_UNROLL
        for (size_t col = 0; col < TILE_COLS; col++) {
            w[col] = load_as_float(s->w[col], w_at + v * LANES, dtype);
            if (!packed && v == 0) /* prefetch the same part of the next tile, row by row */
                __builtin_prefetch((const char *) s->w[col] + s->prefetch_offset +
                                       k_offset * dtype_bytes(dtype),
                                   0, 2);
        }
        FT_UNROLL
        for (size_t row = 0; row < rows; row++) {
            vf x = vf_load(s->x[row] + x_at + v * LANES);
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
#elif defined __AVX2__ && !defined FT_SIMD_SCALAR
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

FT_INLINE void gemm_tile_rows(const ft_float_tile *t, size_t rows, ft_dtype dtype, bool packed)
{
    for (size_t col = 0; col < t->cols; col += TILE_COLS) {
        tile_state s;
        tile_begin(&s, t, col, rows, dtype, packed);
        for (size_t k_offset = 0; k_offset < t->k; k_offset += FT_FLOAT_LANES)
            multiply_lanes(&s, k_offset, rows, dtype, packed);
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

/* ---- Packing ------------------------------------------------------------------------------ */

FT_INLINE void pack_row(float *to, const void *from, ft_dtype dtype, size_t tile, size_t k)
{
    size_t k_offset = 0, n_full = k / FT_FLOAT_LANES * FT_FLOAT_LANES;
    for (; k_offset < n_full; k_offset += LANES)
        vf_store(to + k_offset / FT_FLOAT_LANES * FT_FLOAT_LANES * tile + k_offset % FT_FLOAT_LANES,
                 load_as_float(from, k_offset, dtype));
    if (n_full < k) {
        union {
            float floats[FT_FLOAT_LANES];
            uint16_t u16[FT_FLOAT_LANES];
        } tail = { { 0 } };
        memcpy(&tail, (const char *) from + n_full * dtype_bytes(dtype),
               (k - n_full) * dtype_bytes(dtype));
        for (k_offset = 0; k_offset < FT_FLOAT_LANES; k_offset += LANES)
            vf_store(to + n_full * tile + k_offset, load_as_float(&tail, k_offset, dtype));
    }
}

static void pack(float *to, const void *from, size_t stride, ft_dtype dtype, size_t rows,
                 size_t tile, size_t k)
{
    for (size_t row = 0; row < tile; row++, to += FT_FLOAT_LANES) {
        const void *k_offset = (const char *) from + row * stride * dtype_bytes(dtype);
        if (row >= rows)
            for (size_t i = 0; i < k; i += FT_FLOAT_LANES)
                memset(to + i * tile, 0, FT_FLOAT_LANES * sizeof(float));
        else if (dtype == FT_F16)
            pack_row(to, k_offset, FT_F16, tile, k);
        else if (dtype == FT_BF16)
            pack_row(to, k_offset, FT_BF16, tile, k);
        else
            pack_row(to, k_offset, FT_F32, tile, k);
    }
}

/* ---- One function per number of rows and operand type --------------------------------------- */

enum { OPERAND_F32, OPERAND_F16, OPERAND_BF16, OPERAND_PACKED, N_OPERANDS };

#define TILE_FUNCTION(rows, name, dtype, packed)                                                   \
    static void multiply_##name##_##rows(const ft_float_tile *t)                                   \
    {                                                                                              \
        gemm_tile_rows(t, rows, dtype, packed);                                                    \
    }
#define WEIGHTED_SUM_FUNCTION(rows, name, dtype)                                                   \
    static void mix_##name##_##rows(const ft_float_weighted_sum *m)                                \
    {                                                                                              \
        weighted_sum_rows(m, rows, dtype);                                                         \
    }
#define FUNCTIONS(rows)                                                                            \
    TILE_FUNCTION(rows, f32, FT_F32, false)                                                        \
    TILE_FUNCTION(rows, f16, FT_F16, false)                                                        \
    TILE_FUNCTION(rows, bf16, FT_BF16, false)                                                      \
    TILE_FUNCTION(rows, packed, FT_F32, true)                                                      \
    WEIGHTED_SUM_FUNCTION(rows, f32, FT_F32)                                                       \
    WEIGHTED_SUM_FUNCTION(rows, f16, FT_F16)                                                       \
    WEIGHTED_SUM_FUNCTION(rows, bf16, FT_BF16)
#define TABLE_ROW(rows)                                                                            \
    {                                                                                              \
        { multiply_f32_##rows, multiply_f16_##rows, multiply_bf16_##rows,                          \
          multiply_packed_##rows },                                                                \
            { mix_f32_##rows, mix_f16_##rows, mix_bf16_##rows },                                   \
    }

FUNCTIONS(1)
#if defined __AVX2__ && !defined FT_SIMD_SCALAR
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
    void (*weighted_sum[OPERAND_BF16 + 1])(const ft_float_weighted_sum *);
} functions[TILE_ROWS] = {
    TABLE_ROW(1),
#if defined __AVX2__ && !defined FT_SIMD_SCALAR
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
    functions[t->rows - 1].gemm_tile[t->packed ? OPERAND_PACKED : operand_of(t->w_dtype)](t);
}

static void weighted_sum(const ft_float_weighted_sum *m)
{
    functions[m->rows - 1].weighted_sum[operand_of(m->v_dtype)](m);
}

#define FT_FLOAT_KERNELS                                                                           \
    {                                                                                              \
        .rows = TILE_ROWS, .cols = TILE_COLS, .gemm_tile = gemm_tile,                              \
        .weighted_sum = weighted_sum, .pack = pack                                                 \
    }
