/*
 * f32_packed_impl.h - part of the body of f32_*.c: the register tile of packed operands.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cpu/gemm/f32/f32_load.h"

/* The largest tile whose accumulators fit the registers. */
enum {
    PACKED_ROWS = LANES == 16 ? 14
                  : LANES > 1 ? 6
                              : 2,
    PACKED_VECTORS = LANES > 4 ? 2 : 4,
    PACKED_COLS = PACKED_VECTORS * LANES,
    MAX_WIDTH = 32, /* of a step; at least the rows and the columns of a tile */
    TREE_LEVELS = 4,
    X_PREFETCH = 512, /* floats ahead; x comes from the L2 or L3 cache */
    PREFETCH_STEPS = LANES == 8 || LANES == 4 ? 2 : 1, /* steps of which x is about a cache line */
};

/* ---- Packing ------------------------------------------------------------------------------ */

/* Position of a lane in packed order: its four bits reversed. */
static const uint8_t lane_position[FT_FLOAT_LANES] = { 0, 8, 4, 12, 2, 10, 6, 14,
                                                       1, 9, 5, 13, 3, 11, 7, 15 };

/* Packs LANES rows at one step: a transposed square for each vector of lanes. */
FT_INLINE void pack_step(float *to, size_t lane_stride, const void *const *row, size_t k_offset,
                         size_t k, ft_dtype dtype)
{
    FT_UNROLL
    for (size_t v = 0; v < VECTORS; v++) {
        vf square[LANES];
        FT_UNROLL
        for (size_t i = 0; i < LANES; i++)
            square[i] = load_padded(row[i], k_offset + v * LANES, k, dtype);
        vf_transpose(square);
        FT_UNROLL
        for (size_t i = 0; i < LANES; i++)
            vf_store(to + lane_position[v * LANES + i] * lane_stride, square[i]);
    }
}

/*
 * The vectors of a step may reach into the next step, and those of the last step into the padding
 * of the lane; whatever they overwrite is written later, or not used.
 */
FT_INLINE void pack_rows(float *to, const void *const *row, ft_dtype dtype, size_t width, size_t k)
{
    size_t lane_stride = ft_float_lane_stride(width, k);
    for (size_t k_offset = 0; k_offset < k; k_offset += FT_FLOAT_LANES, to += width)
        for (size_t i = 0; i < width; i += LANES)
            pack_step(to + i, lane_stride, row + i, k_offset, k, dtype);
}

static void pack(float *to, const void *from, size_t stride, ft_dtype dtype, size_t rows,
                 size_t width, size_t k)
{
    const void *row[MAX_WIDTH];
    for (size_t i = 0; i < MAX_WIDTH; i++)
        row[i] = (const char *) from + (i < rows ? i : rows - 1) * stride * dtype_bytes(dtype);
    if (dtype == FT_F16)
        pack_rows(to, row, FT_F16, width, k);
    else if (dtype == FT_BF16)
        pack_rows(to, row, FT_BF16, width, k);
    else
        pack_rows(to, row, FT_F32, width, k);
}

/* ---- Multiplying -------------------------------------------------------------------------- */

/* One partial sum of each output of a tile. */
typedef struct packed_sums {
    vf sum[PACKED_ROWS][PACKED_VECTORS];
} packed_sums;

/* Memory to prefetch: some bytes at a time, so that the requests overlap with arithmetic. */
typedef struct prefetch_stream {
    const char *next;
    size_t bytes; /* per PREFETCH_STEPS */
} prefetch_stream;

FT_INLINE void multiply_step(packed_sums *s, const float *x, const float *w, size_t rows)
{
    vf w_step[PACKED_VECTORS];
    FT_UNROLL
    for (size_t v = 0; v < PACKED_VECTORS; v++)
        w_step[v] = vf_load(w + v * LANES);
    FT_UNROLL
    for (size_t row = 0; row < rows; row++) {
        vf x_step = vf_set(x[row]);
        FORCE_REGISTER(x_step);
        FT_UNROLL
        for (size_t v = 0; v < PACKED_VECTORS; v++)
            s->sum[row][v] = vf_fma(x_step, w_step[v], s->sum[row][v]);
    }
}

FT_INLINE void multiply_lane(packed_sums *s, const float *x, const float *w, size_t rows,
                             size_t steps, prefetch_stream *stream)
{
    FT_UNROLL
    for (size_t row = 0; row < rows; row++) {
        FT_UNROLL
        for (size_t v = 0; v < PACKED_VECTORS; v++)
            s->sum[row][v] = vf_set(0.0f);
    }
    size_t step = 0;
    for (; step + PREFETCH_STEPS <= steps; step += PREFETCH_STEPS) {
        __builtin_prefetch(x + X_PREFETCH, 0, 2);
        __builtin_prefetch(stream->next, 0, 2);
        stream->next += stream->bytes;
        FT_UNROLL
        for (size_t i = 0; i < PREFETCH_STEPS; i++, x += rows, w += PACKED_COLS)
            multiply_step(s, x, w, rows);
    }
    for (; step < steps; step++, x += rows, w += PACKED_COLS)
        multiply_step(s, x, w, rows);
}

FT_INLINE void add_sums(packed_sums *s, const packed_sums *t, size_t rows)
{
    FT_UNROLL
    for (size_t row = 0; row < rows; row++) {
        FT_UNROLL
        for (size_t v = 0; v < PACKED_VECTORS; v++)
            s->sum[row][v] = vf_add(s->sum[row][v], t->sum[row][v]);
    }
}

FT_INLINE void copy_sums(packed_sums *to, const packed_sums *s, size_t rows)
{
    FT_UNROLL
    for (size_t row = 0; row < rows; row++) {
        FT_UNROLL
        for (size_t v = 0; v < PACKED_VECTORS; v++)
            to->sum[row][v] = s->sum[row][v];
    }
}

FT_INLINE void store_sums(const ft_float_packed_tile *t, const packed_sums *s, size_t rows)
{
    FT_UNROLL
    for (size_t row = 0; row < rows; row++) {
        float *to = t->acc + row * t->acc_stride;
        FT_UNROLL
        for (size_t v = 0; v < PACKED_VECTORS; v++) {
            vf sum = s->sum[row][v];
            vf_store(to + v * LANES, t->accumulate ? vf_add(vf_load(to + v * LANES), sum) : sum);
        }
    }
}

/*
 * Lanes are stored in the order in which the tree adds them. The reduction keeps one set of partial
 * sums per level of the tree: the sums of a lane are added to those of the lane before it, then to
 * those of the pair before that, and so on, as a carry propagates in a binary counter.
 */
FT_INLINE void gemm_packed_rows(const ft_float_packed_tile *t, size_t rows)
{
    packed_sums s, waiting[TREE_LEVELS];
    size_t steps = (t->k + FT_FLOAT_LANES - 1) / FT_FLOAT_LANES;
    size_t x_stride = ft_float_lane_stride(rows, t->k);
    size_t w_stride = ft_float_lane_stride(PACKED_COLS, t->k);
    size_t n_prefetches = FT_FLOAT_LANES * (steps + 1) / PREFETCH_STEPS;
    prefetch_stream stream = { t->prefetch, (t->prefetch_bytes + n_prefetches - 1) / n_prefetches };
    for (size_t lane = 0; lane < FT_FLOAT_LANES; lane++) {
        size_t level = 0;
        multiply_lane(&s, t->x + lane * x_stride, t->w + lane * w_stride, rows, steps, &stream);
        for (; lane >> level & 1; level++)
            add_sums(&s, &waiting[level], rows);
        if (level < TREE_LEVELS)
            copy_sums(&waiting[level], &s, rows);
    }
    store_sums(t, &s, rows);
}

#define PACKED_TILE_FUNCTION(rows)                                                                 \
    static void multiply_packed_##rows(const ft_float_packed_tile *t)                              \
    {                                                                                              \
        gemm_packed_rows(t, rows);                                                                 \
    }

PACKED_TILE_FUNCTION(1)
PACKED_TILE_FUNCTION(2)
#if (defined __AVX2__ || defined __aarch64__) && !defined FT_SIMD_SCALAR
PACKED_TILE_FUNCTION(3)
PACKED_TILE_FUNCTION(4)
PACKED_TILE_FUNCTION(5)
PACKED_TILE_FUNCTION(6)
#endif
#if defined __AVX512F__ && !defined FT_SIMD_SCALAR
PACKED_TILE_FUNCTION(7)
PACKED_TILE_FUNCTION(8)
PACKED_TILE_FUNCTION(9)
PACKED_TILE_FUNCTION(10)
PACKED_TILE_FUNCTION(11)
PACKED_TILE_FUNCTION(12)
PACKED_TILE_FUNCTION(13)
PACKED_TILE_FUNCTION(14)
#endif

static void gemm_packed_tile(const ft_float_packed_tile *t)
{
    static void (*const function[PACKED_ROWS])(const ft_float_packed_tile *) = {
        multiply_packed_1,
        multiply_packed_2,
#if (defined __AVX2__ || defined __aarch64__) && !defined FT_SIMD_SCALAR
        multiply_packed_3,
        multiply_packed_4,
        multiply_packed_5,
        multiply_packed_6,
#endif
#if defined __AVX512F__ && !defined FT_SIMD_SCALAR
        multiply_packed_7,
        multiply_packed_8,
        multiply_packed_9,
        multiply_packed_10,
        multiply_packed_11,
        multiply_packed_12,
        multiply_packed_13,
        multiply_packed_14,
#endif
    };
    function[t->rows - 1](t);
}

/* ---- Transposing -------------------------------------------------------------------------- */

static void transpose(float *to, size_t to_stride, const float *from, size_t stride, size_t cols,
                      size_t k)
{
    for (size_t col = 0; col < to_stride; col += LANES)
        for (size_t k_offset = 0; k_offset < k; k_offset += LANES) {
            vf square[LANES];
            FT_UNROLL
            for (size_t i = 0; i < LANES; i++)
                square[i] = col + i < cols
                                ? load_padded(from + (col + i) * stride, k_offset, k, FT_F32)
                                : vf_set(0.0f);
            vf_transpose(square);
            for (size_t i = 0; i < LANES && k_offset + i < k; i++)
                vf_store(to + (k_offset + i) * to_stride + col, square[i]);
        }
}
