/*
 * conv.c - convolution by im2col and GEMM, block by block.
 *
 * All windows at once would need many times the memory of the images, so im2col produces blocks
 * that stay in the caches. Each window is a row of a batch-invariant GEMM, so neither the block
 * size nor the number of threads affects a result.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/conv/conv.h"

#include "kernels/cpu/gemm/groupwise/gemm_groupwise.h"
#include "kernels/cpu/gemm/f32/gemm_f32.h"
#include "kernels/cpu/gemm/int8/gemm_i8.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"

#include <assert.h>

enum {
    BLOCK_BYTES = 1 << 20, /* of im2col windows per thread, to fit the L2 cache */
    MIN_ROWS = 48,         /* per block: weights are packed again for each block */
    MAX_ROWS = 480,        /* per block and thread; more rows do not improve the reuse of weights */
};

static bool is_direct(const ft_conv *c)
{
    return c->kernel[0] == 1 && c->kernel[1] == 1 && c->stride[0] == 1 && c->stride[1] == 1 &&
           c->padding[0] == 0 && c->padding[1] == 0;
}

ft_conv_tiling ft_conv_tiling_for(const ft_conv *c, const ft_weight *weight, ft_dtype x,
                                  size_t images, int threads)
{
    ft_conv_tiling tiling = {
        .channels = (size_t) c->channels,
        .pixels = (size_t) c->height * (size_t) c->width,
        .positions = (size_t) ft_conv_out_size(c, 0) * (size_t) ft_conv_out_size(c, 1),
        .window_size = weight->cols,
        .out_channels = weight->rows,
        .size = weight->dtype == FT_I8 ? sizeof(int8_t) : sizeof(float),
        .direct = is_direct(c),
        .transposed = c->in_layout == FT_IMAGE_NCHW || (x != FT_F32 && x != FT_I8),
    };
    size_t rows = BLOCK_BYTES / (tiling.window_size * tiling.size);
    rows = rows < MIN_ROWS ? MIN_ROWS : ft_min_size(rows, MAX_ROWS);
    rows *= (size_t) threads;
    tiling.images = ft_min_size((rows + tiling.positions - 1) / tiling.positions, images);
    tiling.rows = ft_min_size(rows, tiling.images * tiling.positions);
    return tiling;
}

/* ---- Scratch ------------------------------------------------------------------------------ */

/*
 * Offsets in the scratch buffer: windows, outputs and the scratch of the GEMM; pixels come first.
 */
typedef struct buffers {
    size_t windows, outputs, gemm, bytes;
} buffers;

static size_t gemm_scratch(const ft_weight *weight, const ft_conv_tiling *tiling, int threads)
{
    if (weight->dtype == FT_I8)
        return ft_gemm_i8_scratch(tiling->rows, tiling->out_channels, tiling->window_size, threads);
    if (weight->groupwise.scale != NULL)
        return ft_gemm_groupwise_scratch(&weight->groupwise, tiling->rows, tiling->window_size,
                                         threads);
    return ft_gemm_float_scratch(FT_F32, tiling->rows, tiling->window_size, threads);
}

/* Appends a buffer of a x b x size bytes to `used`; returns false if that overflows a size_t. */
static bool add_buffer(size_t *used, size_t a, size_t b, size_t size)
{
    size_t bytes;
    if (!ft_checked_mul(a, b, &bytes) || !ft_checked_mul(bytes, size, &bytes) ||
        bytes > SIZE_MAX - 63)
        return false;
    return ft_checked_add(*used, ft_round_up(bytes, 64), used);
}

/* bytes is SIZE_MAX on overflow. */
static buffers buffers_for(const ft_weight *weight, const ft_conv_tiling *tiling, int threads)
{
    buffers p = { .bytes = SIZE_MAX };
    size_t used = 0;
    if (tiling->transposed && !tiling->direct &&
        !add_buffer(&used, tiling->images, tiling->channels * tiling->pixels, tiling->size))
        return p;
    p.windows = used;
    if ((tiling->transposed || !tiling->direct) &&
        !add_buffer(&used, tiling->rows, tiling->window_size, tiling->size))
        return p;
    p.outputs = used;
    if (!add_buffer(&used, tiling->rows, tiling->out_channels, sizeof(float)))
        return p;
    p.gemm = used;
    if (ft_checked_add(used, gemm_scratch(weight, tiling, threads), &used))
        p.bytes = used;
    return p;
}

ft_workspace ft_cpu_conv_workspace(const ft_plan *plan, const ft_op *op, const ft_limits *limits)
{
    const ft_weight *weight = &plan->weight[op->weight[0]];
    ft_conv_tiling tiling = ft_conv_tiling_for(&op->attr.conv, weight, plan->value[op->in[0]].dtype,
                                               limits->sequences, limits->threads);
    return (ft_workspace){ .scratch = buffers_for(weight, &tiling, limits->threads).bytes };
}

/* ---- GEMM --------------------------------------------------------------------------------- */

/* A block of windows and its outputs. */
typedef struct block {
    void *windows; /* [count, window_size] */
    size_t count;
    float *outputs; /* [count, out_channels] */
    void *scratch;
    size_t scratch_bytes;
} block;

/*
 * LINEAR with float output, which ft_conv_store_output() clamps and rounds.
 */
static void gemm_block(const ft_args *args, const ft_conv_tiling *tiling, const block *b)
{
    ft_args gemm = *args;
    gemm.in[0] = (ft_view){ .data = b->windows,
                            .rows = b->count,
                            .cols = tiling->window_size,
                            .dtype = args->weight[0]->dtype == FT_I8 ? FT_I8 : FT_F32,
                            .scale = args->in[0].scale };
    gemm.out = (ft_view){
        .data = b->outputs, .rows = b->count, .cols = tiling->out_channels, .dtype = FT_F32
    };
    gemm.quantized = (ft_view){ 0 };
    gemm.scratch = b->scratch;
    gemm.scratch_bytes = b->scratch_bytes;
    ft_cpu_linear(&gemm);
}

/* ------------------------------------------------------------------------------------------- */

/* Pixels from number `first` on, where they are used in place. */
static void *pixels_at(const ft_args *args, const ft_conv_tiling *tiling, size_t first)
{
    return (char *) args->in[0].data + first * tiling->channels * tiling->size;
}

/* The windows of some images; the first of them is window `before` of the batch. */
static void convolve(const ft_args *args, const ft_conv_tiling *tiling, const buffers *p,
                     size_t images, size_t first_window)
{
    char *base = args->scratch;
    block b = {
        .windows = base + p->windows,
        .outputs = (float *) (void *) (base + p->outputs),
        .scratch = base + p->gemm,
        .scratch_bytes = args->scratch_bytes - p->gemm,
    };
    size_t windows = images * tiling->positions,
           pixel = first_window / tiling->positions * tiling->pixels;
    const void *pixels = tiling->transposed ? base : pixels_at(args, tiling, pixel);
    if (tiling->transposed && !tiling->direct)
        ft_conv_nchw_to_nhwc(args, tiling, pixel, images * tiling->pixels, base);
    for (size_t first = 0; first < windows; first += tiling->rows) {
        b.count = ft_min_size(tiling->rows, windows - first);
        if (!tiling->direct)
            ft_conv_im2col(args, tiling, pixels, first, b.count, b.windows);
        else if (tiling->transposed)
            ft_conv_nchw_to_nhwc(args, tiling, first_window + first, b.count, b.windows);
        else
            b.windows = pixels_at(args, tiling, first_window + first);
        gemm_block(args, tiling, &b);
        ft_conv_store_output(args, tiling, first_window + first, b.count, b.outputs);
    }
}

void ft_cpu_conv(const ft_args *args)
{
    size_t images = args->in[0].rows;
    if (images == 0)
        return;
    ft_conv_tiling tiling = ft_conv_tiling_for(&args->op->attr.conv, args->weight[0],
                                               args->in[0].dtype, images, args->threads);
    buffers p = buffers_for(args->weight[0], &tiling, args->threads);
    assert(p.bytes <= args->scratch_bytes);
    for (size_t first = 0; first < images; first += tiling.images)
        convolve(args, &tiling, &p, ft_min_size(tiling.images, images - first),
                 first * tiling.positions);
}
