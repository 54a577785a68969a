/*
 * conv_wgmma.cu - which convolutions the tensor-core kernels of sm_90a support, and their launch.
 *
 * FT_CUDA_CONV=plain selects conv_simt.cu instead.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/conv/conv_wgmma.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Zero-point correction of int8 activations ---------------------------------------------- */

enum { EXCESS_THREADS = 128 };

/* zp_correction[output] = zero * the sum of its weights; one warp per output channel. */
static __global__ void __launch_bounds__(EXCESS_THREADS)
    excess_kernel(int32_t *excess, const int8_t *w, int outputs, int window, int zero)
{
    int output = (int) (blockIdx.x * EXCESS_THREADS + threadIdx.x) / 32, sum = 0;
    size_t padded = ft_layout_rows(FT_COL4_4R2_8C, (size_t) outputs);
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    if (output >= outputs)
        return;
    for (int col = (int) threadIdx.x % 32; col < window; col += 32)
        sum += w[ft_offset_col4((unsigned) output, (unsigned) col, padded)];
    for (int distance = 16; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, distance);
    if (threadIdx.x % 32 == 0)
        excess[output] = sum * zero;
}

/* ---- Supported problems --------------------------------------------------------------------- */

static bool has_operands(const conv_task *t)
{
    if (t->x_dtype == FT_I8)
        return t->tiles != NULL;
    if (t->x_dtype != FT_F16 && t->x_dtype != FT_BF16)
        return false;
    if (t->blocks.scale != NULL)
        return !t->blocks.by_codes;
    return t->w_dtype == t->x_dtype && t->window % 8 == 0;
}

static bool asks_for_plain(void)
{
    const char *asked = getenv("FT_CUDA_CONV");
    return asked != NULL && strcmp(asked, "plain") == 0;
}

bool ft_cuda_conv_wgmma_takes(const ft_cuda_chip *chip, const conv_task *t)
{
    return chip->has_wgmma && has_operands(t) && ft_cuda_conv_order(t).order != CONV_NO_ORDER &&
           !asks_for_plain();
}

/* Bytes of images in the input layout, without the zero-point correction. */
static size_t turned_bytes(const conv_task *t, const conv_turned *turned)
{
    size_t bytes = (size_t) t->images * turned->image;
    return turned->made ? (bytes + 255) / 256 * 256 : 0;
}

size_t ft_cuda_conv_wgmma_scratch(const conv_task *t)
{
    conv_turned turned = ft_cuda_conv_order(t);
    size_t excess = t->conv.zero != 0 ? (size_t) t->outputs * sizeof(int32_t) : 0;
    return turned_bytes(t, &turned) + excess;
}

/* ---- Launch --------------------------------------------------------------------------------- */

static int map_weights(conv_product *p)
{
    const conv_task *t = &p->t;
    unsigned rows = (unsigned) p->tile_outputs;
    if (t->blocks.scale != NULL) {
        cuuint64_t bits = (cuuint64_t) ft_blocks_bits(t->w_dtype);
        cuuint64_t lines = ((cuuint64_t) t->window + 31) / 32 * bits; /* of 128 bytes, per panel */
        cuuint64_t size[3] = { 128, lines, (cuuint64_t) p->padded / 32 };
        cuuint64_t apart[2] = { 128, lines * 128 };
        cuuint32_t box[3] = { 128, (p->held ? 4u : 2u) * (cuuint32_t) bits, rows / 32 };
        return ft_map_bytes(&p->w, t->w, 3, size, apart, box);
    }
    if (p->woven)
        return ft_map_woven(&p->w, t->w, (size_t) t->outputs, 2 * (size_t) t->window, rows);
    if (t->x_dtype == FT_I8)
        return ft_map_tiles(&p->w, t->tiles, (size_t) conv_cover(t->outputs, 32),
                            (size_t) conv_cover(t->window, CONV_STEP), rows);
    return ft_map_codes(&p->w, t->w, (size_t) t->outputs, 2 * (size_t) t->window, rows);
}

static int map_taps(conv_product *p, const conv_turned *turned, const void *x, unsigned windows)
{
    const ft_conv *c = &p->t.conv;
    ft_taps taps = {};
    taps.data = x;
    taps.count = (size_t) p->t.images;
    taps.height = (size_t) turned->height, taps.width = (size_t) turned->width;
    taps.pixel = turned->line;
    for (int i = 0; i < 2; i++) {
        taps.padding[i] = p->padding[i];
        taps.reach[i] = c->dilation[i] * (c->kernel[i] - 1);
        taps.stride[i] = c->stride[i];
    }
    taps.line = (unsigned) p->line;
    taps.windows = windows;
    return ft_map_taps(&p->x, &taps);
}

static int map_windows(conv_product *p, const conv_turned *turned, const void *x)
{
    const ft_conv *c = &p->t.conv;
    size_t size = p->t.x_dtype == FT_I8 ? 1 : 2,
           runs = (size_t) (p->t.images * p->t.positions) / (size_t) p->run;
    cuuint32_t windows = (cuuint32_t) p->x_bytes / CONV_STEP;
    if (p->order == CONV_PIXELS)
        return map_taps(p, turned, x, windows);
    if (p->order == CONV_PLANES) {
        cuuint64_t plane = (cuuint64_t) p->t.positions * 2, channels = (cuuint64_t) c->channels;
        cuuint64_t extent[3] = { plane, channels, runs }, apart[2] = { plane, plane * channels };
        cuuint32_t box[3] = { CONV_STEP, 64, 1 };
        return ft_map_bytes(&p->x, x, 3, extent, apart, box);
    }
    cuuint64_t row = turned->line * (p->order == CONV_ROWS ? (cuuint64_t) c->stride[1] : 1);
    cuuint64_t extent[3] = { (cuuint64_t) p->t.window * size, (cuuint64_t) p->run, runs };
    cuuint64_t apart[2] = { row, runs > 1 ? turned->image : row * (cuuint64_t) p->run };
    cuuint32_t box[3] = { CONV_STEP, windows, 1 };
    return ft_map_bytes(&p->x, x, 3, extent, apart, box);
}

/* Whether segments are images. Otherwise all images form one segment of consecutive windows. */
static bool runs_are_images(const conv_product *p)
{
    const ft_conv &c = p->t.conv;
    return p->order == CONV_PLANES ||
           (p->order == CONV_ROWS &&
            (c.kernel[1] != 1 || c.stride[1] != 1 || c.padding[1] != 0 || c.stride[0] != 1));
}

/* Consecutive results of a channel that are one vector store. */
static int store_width(const conv_task *t)
{
    int size = t->y_dtype == FT_I8 ? 1 : t->y_dtype == FT_F32 ? 4 : 2;
    bool aligned = (uintptr_t) t->y % 16 == 0;
    return aligned && t->positions * size % 16 == 0 ? 16 / size
           : aligned && t->positions % 4 == 0       ? 4
                                                    : 1;
}

/*
 * Whether eight consecutive channels of a pixel are one store; ft_map_woven() gives lanes such
 * channels.
 */
static bool eights(const conv_task *t)
{
    bool codes = t->x_dtype == FT_I8 || t->blocks.scale != NULL;
    return (uintptr_t) t->y % 32 == 0 && t->outputs % (codes ? 8 : 32) == 0;
}

/* Folds a clamping activation into the range. */
static void set_range(conv_product *p)
{
    const ft_conv &c = p->t.conv;
    bool relu = p->t.activation == FT_ACT_RELU;
    p->activates = !relu && p->t.activation != FT_ACT_NONE;
    p->ranged = relu || c.clamps;
    p->low = !c.clamps ? 0.0f : relu && c.low < 0.0f ? 0.0f : c.low;
    p->high = c.clamps ? c.high : INFINITY;
    p->lowest = !p->ranged ? 1 : 128 + ft_quantize(p->low, p->t.y_inverse);
    p->highest = !c.clamps ? 255 : 128 + ft_quantize(p->high, p->t.y_inverse);
}

static conv_product product_of(const conv_task *t, const conv_turned *turned)
{
    conv_product p = {};
    int size = t->x_dtype == FT_I8 ? 1 : 2;
    p.t = *t;
    p.order = turned->order;
    p.run = runs_are_images(&p) ? t->positions : t->images * t->positions;
    p.steps = conv_cover(t->window * size, CONV_STEP);
    p.pixel = (int) turned->line;
    p.line = p.order != CONV_PIXELS || p.pixel % 128 == 0 ? 128 : p.pixel % 64 == 0 ? 64 : 32;
    for (int i = 0; i < 2; i++)
        p.padding[i] = t->conv.padding[i] - turned->frame[i];
    p.group = conv_divider_of(t->blocks.group == 0 ? INT32_MAX : t->blocks.group);
    p.group_steps = t->blocks.group == 0        ? p.steps
                    : t->blocks.group % 64 == 0 ? t->blocks.group / 64
                                                : 0;
    p.group_runs = t->blocks.group == 0         ? conv_cover(p.steps, 2)
                   : t->blocks.group % 128 == 0 ? t->blocks.group / 128
                                                : 0;
    p.padded = (int) ft_layout_rows(FT_PANEL32, (size_t) t->outputs);
    p.store_width = store_width(t);
    p.eights = eights(t);
    set_range(&p);
    p.positions = conv_divider_of(t->positions);
    p.across = conv_divider_of(t->across);
    return p;
}

static int map_operands(conv_product *p, const conv_turned *turned, const void *x)
{
    int status = map_weights(p);
    return status != 0 ? status : map_windows(p, turned, x);
}

static int multiply_to_pixels(const ft_cuda_chip *chip, void *stream, conv_product *p,
                              const conv_turned *turned, const void *x)
{
    const conv_rows_tile *tile = ft_cuda_conv_choose_rows(chip, p);
    int status = map_operands(p, turned, x);
    if (status != 0)
        return status;
    if (p->held)
        return ft_cuda_conv_held(chip, stream, p);
    conv_rows_launcher *launch = p->t.x_dtype == FT_I8       ? ft_cuda_conv_rows_codes
                                 : p->t.blocks.scale != NULL ? ft_cuda_conv_rows_blocks
                                                             : ft_cuda_conv_rows_halves;
    return launch(chip, stream, p, tile);
}

static int multiply(const ft_cuda_chip *chip, void *stream, conv_product *p,
                    const conv_turned *turned, const void *x)
{
    if (p->t.conv.out_order == FT_IMAGE_PIXELS)
        return multiply_to_pixels(chip, stream, p, turned, x);
    int n = ft_cuda_conv_choose(chip, p);
    int status = map_operands(p, turned, x);
    if (status != 0)
        return status;
    if (p->held)
        return ft_cuda_conv_held(chip, stream, p);
    conv_launcher *launch = p->t.x_dtype == FT_I8       ? ft_cuda_conv_codes
                            : p->t.blocks.scale != NULL ? ft_cuda_conv_blocks
                                                        : ft_cuda_conv_halves;
    return launch(chip, stream, p, n);
}

int ft_cuda_conv_wgmma(const ft_cuda_chip *chip, void *stream, const conv_task *t, void *scratch)
{
    conv_turned turned = ft_cuda_conv_order(t);
    conv_product p = product_of(t, &turned);
    int32_t *excess = (int32_t *) ((char *) scratch + turned_bytes(t, &turned));
    int status = 0;
    if (t->conv.zero != 0) {
        p.excess = excess;
        status = ft_launch(excess_kernel, ft_cover((size_t) t->outputs * 32, EXCESS_THREADS),
                           EXCESS_THREADS, 0, stream, chip->overlaps, 1, excess,
                           (const int8_t *) t->w, t->outputs, t->window, t->conv.zero);
    }
    if (status == 0 && turned.made)
        status = ft_cuda_conv_turn(chip, stream, t, &turned, scratch);
    return status != 0 ? status : multiply(chip, stream, &p, &turned, turned.made ? scratch : t->x);
}
