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
    PARTS = FT_FLOAT_LANES / LANES,
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
#define IN_REGISTER(v) __asm__("" : "+v"(v))
#else
#define IN_REGISTER(v) (void) (v)
#endif

FT_INLINE vf load_weights(const void *w, size_t at, ft_dtype dtype)
{
    if (dtype == FT_F16)
        return vf_load_f16((const uint16_t *) w + at);
    if (dtype == FT_BF16)
        return vf_load_bf16((const uint16_t *) w + at);
    return vf_load((const float *) w + at);
}

/*
 * A register tile. Columns beyond the end of the matrix repeat the last one; their results are
 * ignored.
 */
typedef struct tile_state {
    const float *x[TILE_ROWS];
    const void *w[TILE_COLS];
    size_t ahead; /* bytes from a row of w to the row in the same position of the next tile */
    vf sum[TILE_ROWS][TILE_COLS][PARTS];
} tile_state;

FT_INLINE size_t dtype_bytes(ft_dtype dtype)
{
    return dtype == FT_F32 ? 4 : 2;
}

/* Starts the tile at column `first`. */
FT_INLINE void begin_tile(tile_state *s, const ft_float_tile *t, size_t first, size_t rows,
                          ft_dtype dtype, bool packed)
{
    size_t x_stride = packed ? FT_FLOAT_LANES : t->x_stride;
    size_t w_stride = packed ? FT_FLOAT_LANES : t->w_stride, left = t->cols - first;
    size_t padded_k = (t->k + FT_FLOAT_LANES - 1) / FT_FLOAT_LANES * FT_FLOAT_LANES;
    const char *w =
        (const char *) t->w + first * (packed ? padded_k : t->w_stride) * dtype_bytes(dtype);
    FT_UNROLL
    for (size_t col = 0; col < TILE_COLS; col++) {
        s->w[col] = w + (col < left ? col : left - 1) * w_stride * dtype_bytes(dtype);
        FT_UNROLL
        for (size_t row = 0; row < rows; row++) {
            FT_UNROLL
            for (size_t part = 0; part < PARTS; part++)
                s->sum[row][col][part] = vf_set(0.0f);
        }
    }
    s->ahead = TILE_COLS * w_stride * dtype_bytes(dtype);
    FT_UNROLL
    for (size_t row = 0; row < rows; row++)
        s->x[row] = t->x + row * x_stride;
}

/*
 * Offset of element k_offset of an operand's row; in a packed operand the rows of a tile are
 * interleaved.
 */
FT_INLINE size_t place(size_t at, size_t tile, bool packed)
{
    return packed ? at * tile : at;
}

FT_INLINE void add_lanes(tile_state *s, size_t at, size_t rows, ft_dtype dtype, bool packed)
{
    size_t x_at = place(at, TILE_ROWS, packed), w_at = place(at, TILE_COLS, packed);
    FT_UNROLL
    for (size_t part = 0; part < PARTS; part++) {
        vf w[TILE_COLS];
        FT_UNROLL
        for (size_t col = 0; col < TILE_COLS; col++) {
            w[col] = load_weights(s->w[col], w_at + part * LANES, dtype);
            if (!packed && part == 0) /* prefetch the same part of the next tile, row by row */
                __builtin_prefetch((const char *) s->w[col] + s->ahead + at * dtype_bytes(dtype), 0,
                                   2);
        }
        FT_UNROLL
        for (size_t row = 0; row < rows; row++) {
            vf x = vf_load(s->x[row] + x_at + part * LANES);
            IN_REGISTER(x);
            FT_UNROLL
            for (size_t col = 0; col < TILE_COLS; col++)
                s->sum[row][col][part] = vf_fma(x, w[col], s->sum[row][col][part]);
        }
    }
}

FT_INLINE void row_sums(float sums[TILE_COLS], const vf lanes[TILE_COLS][PARTS])
{
#if defined __AVX512F__ && !defined FT_SIMD_SCALAR
    vf_sum_four(sums, lanes[0][0], lanes[1][0], lanes[2][0], lanes[3][0]);
#elif defined __AVX2__ && !defined FT_SIMD_SCALAR
    vf_sum_two(sums, lanes[0], lanes[1]);
#else
    sums[0] = vf_sum(lanes[0]);
#endif
}

FT_INLINE void end_tile(const tile_state *s, const ft_float_tile *t, size_t first, size_t rows)
{
    FT_UNROLL
    for (size_t row = 0; row < rows; row++) {
        float sums[TILE_COLS], *to = t->sums + row * t->sums_stride + first;
        row_sums(sums, s->sum[row]);
        if (t->adds) {
            FT_UNROLL
            for (size_t col = 0; col < TILE_COLS; col++)
                sums[col] = to[col] + sums[col];
        }
        memcpy(to, sums, sizeof sums);
    }
}

FT_INLINE void multiply_tile(const ft_float_tile *t, size_t rows, ft_dtype dtype, bool packed)
{
    for (size_t col = 0; col < t->cols; col += TILE_COLS) {
        tile_state s;
        begin_tile(&s, t, col, rows, dtype, packed);
        for (size_t at = 0; at < t->k; at += FT_FLOAT_LANES)
            add_lanes(&s, at, rows, dtype, packed);
        end_tile(&s, t, col, rows);
    }
}

/* ---- P V ---------------------------------------------------------------------------------- */

/* A strip of y, `units` times FT_FLOAT_LANES columns wide, over all keys. */
FT_INLINE void mix_strip(const ft_float_mix *m, size_t first, size_t rows, size_t units,
                         ft_dtype dtype)
{
    vf sum[TILE_ROWS][TILE_COLS * PARTS];
    FT_UNROLL
    for (size_t row = 0; row < rows; row++) {
        FT_UNROLL
        for (size_t i = 0; i < units * PARTS; i++)
            sum[row][i] = vf_load(m->y + row * m->y_stride + first + i * LANES);
    }
    for (size_t key = 0; key < m->keys; key++) {
        vf v[TILE_COLS * PARTS];
        FT_UNROLL
        for (size_t i = 0; i < units * PARTS; i++)
            v[i] = load_weights(m->v, key * m->v_stride + first + i * LANES, dtype);
        FT_UNROLL
        for (size_t row = 0; row < rows; row++) {
            vf p = vf_set(m->p[row * m->p_stride + key]);
            FT_UNROLL
            for (size_t i = 0; i < units * PARTS; i++)
                sum[row][i] = vf_fma(p, v[i], sum[row][i]);
        }
    }
    FT_UNROLL
    for (size_t row = 0; row < rows; row++) {
        FT_UNROLL
        for (size_t i = 0; i < units * PARTS; i++)
            vf_store(m->y + row * m->y_stride + first + i * LANES, sum[row][i]);
    }
}

FT_INLINE void mix_tile(const ft_float_mix *m, size_t rows, ft_dtype dtype)
{
    size_t col = 0;
    for (; col + TILE_COLS * FT_FLOAT_LANES <= m->cols; col += TILE_COLS * FT_FLOAT_LANES)
        mix_strip(m, col, rows, TILE_COLS, dtype);
    for (; col < m->cols; col += FT_FLOAT_LANES)
        mix_strip(m, col, rows, 1, dtype);
}

/* ---- Packing ------------------------------------------------------------------------------ */

FT_INLINE void pack_row(float *to, const void *from, ft_dtype dtype, size_t tile, size_t k)
{
    size_t at = 0, whole = k / FT_FLOAT_LANES * FT_FLOAT_LANES;
    for (; at < whole; at += LANES)
        vf_store(to + at / FT_FLOAT_LANES * FT_FLOAT_LANES * tile + at % FT_FLOAT_LANES,
                 load_weights(from, at, dtype));
    if (whole < k) {
        union {
            float floats[FT_FLOAT_LANES];
            uint16_t halves[FT_FLOAT_LANES];
        } rest = { { 0 } };
        memcpy(&rest, (const char *) from + whole * dtype_bytes(dtype),
               (k - whole) * dtype_bytes(dtype));
        for (at = 0; at < FT_FLOAT_LANES; at += LANES)
            vf_store(to + whole * tile + at, load_weights(&rest, at, dtype));
    }
}

static void pack(float *to, const void *from, size_t stride, ft_dtype dtype, size_t rows,
                 size_t tile, size_t k)
{
    for (size_t row = 0; row < tile; row++, to += FT_FLOAT_LANES) {
        const void *at = (const char *) from + row * stride * dtype_bytes(dtype);
        if (row >= rows)
            for (size_t i = 0; i < k; i += FT_FLOAT_LANES)
                memset(to + i * tile, 0, FT_FLOAT_LANES * sizeof(float));
        else if (dtype == FT_F16)
            pack_row(to, at, FT_F16, tile, k);
        else if (dtype == FT_BF16)
            pack_row(to, at, FT_BF16, tile, k);
        else
            pack_row(to, at, FT_F32, tile, k);
    }
}

/* ---- One function per number of rows and operand type --------------------------------------- */

enum { KIND_F32, KIND_F16, KIND_BF16, KIND_PACKED, KINDS };

#define TILE_FUNCTION(rows, name, dtype, packed)                                                   \
    static void multiply_##name##_##rows(const ft_float_tile *t)                                   \
    {                                                                                              \
        multiply_tile(t, rows, dtype, packed);                                                     \
    }
#define MIX_FUNCTION(rows, name, dtype)                                                            \
    static void mix_##name##_##rows(const ft_float_mix *m)                                         \
    {                                                                                              \
        mix_tile(m, rows, dtype);                                                                  \
    }
#define FUNCTIONS(rows)                                                                            \
    TILE_FUNCTION(rows, f32, FT_F32, false)                                                        \
    TILE_FUNCTION(rows, f16, FT_F16, false)                                                        \
    TILE_FUNCTION(rows, bf16, FT_BF16, false)                                                      \
    TILE_FUNCTION(rows, packed, FT_F32, true)                                                      \
    MIX_FUNCTION(rows, f32, FT_F32)                                                                \
    MIX_FUNCTION(rows, f16, FT_F16)                                                                \
    MIX_FUNCTION(rows, bf16, FT_BF16)
#define NAMES(rows)                                                                                \
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
    void (*multiply[KINDS])(const ft_float_tile *);
    void (*mix[KIND_BF16 + 1])(const ft_float_mix *);
} functions[TILE_ROWS] = {
    NAMES(1),
#if defined __AVX2__ && !defined FT_SIMD_SCALAR
    NAMES(2), NAMES(3),
#endif
#if defined __AVX512F__ && !defined FT_SIMD_SCALAR
    NAMES(4), NAMES(5), NAMES(6),
#endif
};

static int kind_of(ft_dtype dtype)
{
    return dtype == FT_F16 ? KIND_F16 : dtype == FT_BF16 ? KIND_BF16 : KIND_F32;
}

static void multiply(const ft_float_tile *t)
{
    functions[t->rows - 1].multiply[t->packed ? KIND_PACKED : kind_of(t->w_dtype)](t);
}

static void mix(const ft_float_mix *m)
{
    functions[m->rows - 1].mix[kind_of(m->v_dtype)](m);
}

#define FT_FLOAT_TABLE                                                                             \
    {                                                                                              \
        .rows = TILE_ROWS, .cols = TILE_COLS, .multiply = multiply, .mix = mix, .pack = pack       \
    }
