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
    FEWEST_ROWS = 48,      /* per block: weights are packed again for each block */
    MOST_ROWS = 480,       /* per block and thread; more rows do not improve the reuse of weights */
};

static bool is_direct(const ft_conv *c)
{
    return c->kernel[0] == 1 && c->kernel[1] == 1 && c->stride[0] == 1 && c->stride[1] == 1 &&
           c->padding[0] == 0 && c->padding[1] == 0;
}

ft_conv_cut ft_conv_cut_of(const ft_conv *c, const ft_weight *weight, ft_dtype x, size_t images,
                           int threads)
{
    ft_conv_cut cut = {
        .channels = (size_t) c->channels,
        .pixels = (size_t) c->height * (size_t) c->width,
        .positions = (size_t) ft_conv_size(c, 0) * (size_t) ft_conv_size(c, 1),
        .window = weight->cols,
        .outputs = weight->rows,
        .size = weight->dtype == FT_I8 ? sizeof(int8_t) : sizeof(float),
        .direct = is_direct(c),
        .turned = c->in_order == FT_IMAGE_PLANES || (x != FT_F32 && x != FT_I8),
    };
    size_t rows = BLOCK_BYTES / (cut.window * cut.size);
    rows = rows < FEWEST_ROWS ? FEWEST_ROWS : ft_min_size(rows, MOST_ROWS);
    rows *= (size_t) threads;
    cut.images = ft_min_size((rows + cut.positions - 1) / cut.positions, images);
    cut.rows = ft_min_size(rows, cut.images * cut.positions);
    return cut;
}

/* ---- Scratch ------------------------------------------------------------------------------ */

/*
 * Offsets in the scratch buffer: windows, outputs and the scratch of the GEMM; pixels come first.
 */
typedef struct parts {
    size_t windows, results, product, bytes;
} parts;

static size_t product_scratch(const ft_weight *weight, const ft_conv_cut *cut, int threads)
{
    if (weight->dtype == FT_I8)
        return ft_gemm_i8_scratch(cut->rows, cut->outputs, cut->window, threads);
    if (weight->blocks.scale != NULL)
        return ft_gemm_blocks_scratch(&weight->blocks, cut->rows, cut->window, threads);
    return ft_gemm_float_scratch(FT_F32, cut->rows, cut->window, threads);
}

/* Appends a buffer of a x b x size bytes to `used`; returns false if that overflows a size_t. */
static bool add_part(size_t *used, size_t a, size_t b, size_t size)
{
    size_t bytes;
    if (!ft_mul(a, b, &bytes) || !ft_mul(bytes, size, &bytes) || bytes > SIZE_MAX - 63)
        return false;
    return ft_add(*used, ft_round_up(bytes, 64), used);
}

/* bytes is SIZE_MAX on overflow. */
static parts parts_of(const ft_weight *weight, const ft_conv_cut *cut, int threads)
{
    parts p = { .bytes = SIZE_MAX };
    size_t used = 0;
    if (cut->turned && !cut->direct &&
        !add_part(&used, cut->images, cut->channels * cut->pixels, cut->size))
        return p;
    p.windows = used;
    if ((cut->turned || !cut->direct) && !add_part(&used, cut->rows, cut->window, cut->size))
        return p;
    p.results = used;
    if (!add_part(&used, cut->rows, cut->outputs, sizeof(float)))
        return p;
    p.product = used;
    if (ft_add(used, product_scratch(weight, cut, threads), &used))
        p.bytes = used;
    return p;
}

size_t ft_cpu_conv_scratch(const ft_plan *plan, const ft_op *op, const ft_limits *limits)
{
    const ft_weight *weight = &plan->weight[op->weight[0]];
    ft_conv_cut cut = ft_conv_cut_of(&op->attr.conv, weight, plan->value[op->in[0]].dtype,
                                     limits->sequences, limits->threads);
    return parts_of(weight, &cut, limits->threads).bytes;
}

/* ---- GEMM --------------------------------------------------------------------------------- */

/* A block of windows and its outputs. */
typedef struct block {
    void *windows; /* [count, window_size] */
    size_t count;
    float *results; /* [count, out_channels] */
    void *scratch;
    size_t scratch_bytes;
} block;

/*
 * LINEAR with float output, which ft_conv_store_output() clamps and rounds; rows are
 * batch-invariant.
 */
static void multiply(const ft_args *args, const ft_conv_cut *cut, const block *b)
{
    ft_args product = *args;
    product.in[0] = (ft_view){ .data = b->windows,
                               .rows = b->count,
                               .cols = cut->window,
                               .dtype = args->weight[0]->dtype == FT_I8 ? FT_I8 : FT_F32,
                               .scale = args->in[0].scale };
    product.out =
        (ft_view){ .data = b->results, .rows = b->count, .cols = cut->outputs, .dtype = FT_F32 };
    product.codes = (ft_view){ 0 };
    product.steady = true;
    product.scratch = b->scratch;
    product.scratch_bytes = b->scratch_bytes;
    ft_cpu_linear(&product);
}

/* ------------------------------------------------------------------------------------------- */

/* Pixels from number `first` on, where they are used in place. */
static void *pixels_of(const ft_args *args, const ft_conv_cut *cut, size_t first)
{
    return (char *) args->in[0].data + first * cut->channels * cut->size;
}

/* The windows of some images; the first of them is window `before` of the batch. */
static void convolve(const ft_args *args, const ft_conv_cut *cut, const parts *p, size_t images,
                     size_t before)
{
    char *memory = args->scratch;
    block b = {
        .windows = memory + p->windows,
        .results = (float *) (void *) (memory + p->results),
        .scratch = memory + p->product,
        .scratch_bytes = args->scratch_bytes - p->product,
    };
    size_t windows = images * cut->positions, pixel = before / cut->positions * cut->pixels;
    const void *pixels = cut->turned ? memory : pixels_of(args, cut, pixel);
    if (cut->turned && !cut->direct)
        ft_conv_turn(args, cut, pixel, images * cut->pixels, memory);
    for (size_t first = 0; first < windows; first += cut->rows) {
        b.count = ft_min_size(cut->rows, windows - first);
        if (!cut->direct)
            ft_conv_gather(args, cut, pixels, first, b.count, b.windows);
        else if (cut->turned)
            ft_conv_turn(args, cut, before + first, b.count, b.windows);
        else
            b.windows = pixels_of(args, cut, before + first);
        multiply(args, cut, &b);
        ft_conv_lay_out(args, cut, before + first, b.count, b.results);
    }
}

void ft_cpu_conv(const ft_args *args)
{
    size_t images = args->in[0].rows;
    if (images == 0)
        return;
    ft_conv_cut cut = ft_conv_cut_of(&args->op->attr.conv, args->weight[0], args->in[0].dtype,
                                     images, args->threads);
    parts p = parts_of(args->weight[0], &cut, args->threads);
    assert(p.bytes <= args->scratch_bytes);
    for (size_t first = 0; first < images; first += cut.images)
        convolve(args, &cut, &p, ft_min_size(cut.images, images - first), first * cut.positions);
}
