/*
 * conv_wgmma.cu - which convolutions the tensor cores of sm_90a take, and with which tiles.
 *
 * The choice of a tile is about time only.  FT_CUDA_CONV=plain asks for conv_plain.cu, the name of
 * a tile for that: 64, 96, 128 windows, x2 with teams beside each other, a alone on its
 * multiprocessor.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/conv_wgmma.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Codes whose zero is not 0 -------------------------------------------------------------- */

enum { EXCESS_THREADS = 128 };

/* excess[output] = zero * the sum of its weights; a warp an output. */
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

/* ---- What is taken -------------------------------------------------------------------------- */

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
    bool planes =
        t->conv.in_order == FT_IMAGE_PLANES && t->conv.out_order == FT_IMAGE_PLANES;
    return chip->has_wgmma && planes && has_operands(t) &&
           ft_cuda_conv_order(t).order != CONV_NO_ORDER && !asks_for_plain();
}

/* Images in their order, and what sums contain too much. */
static size_t turned_bytes(const conv_task *t, const conv_turned *turned)
{
    size_t bytes = (size_t) t->images * turned->image;
    return turned->order == CONV_PLANES ? 0 : (bytes + 255) / 256 * 256;
}

size_t ft_cuda_conv_wgmma_scratch(const conv_task *t)
{
    conv_turned turned = ft_cuda_conv_order(t);
    size_t excess = t->conv.zero != 0 ? (size_t) t->outputs * sizeof(int32_t) : 0;
    return turned_bytes(t, &turned) + excess;
}

/* ---- Tiles ---------------------------------------------------------------------------------- */

/* Windows of a team; and as conv_product has them. */
typedef struct tile_choice {
    const char *name;
    int n;
    bool beside;
    bool alone;
} tile_choice;

static int cover(int n, int by)
{
    return (n + by - 1) / by;
}

static void share_out(conv_product *p, const tile_choice *choice)
{
    int outputs = choice->beside ? 64 : 128, windows = choice->beside ? 2 * choice->n : choice->n;
    int runs = p->t.images * p->t.positions / p->run;
    p->beside = choice->beside;
    p->alone = choice->alone;
    p->out_tiles = conv_divider_of(cover(p->t.outputs, outputs));
    p->run_tiles = conv_divider_of(cover(p->run, windows));
    p->tiles = p->out_tiles.by * p->run_tiles.by * runs;
    p->w_bytes = outputs * CONV_STEP;
    p->x_bytes = windows * CONV_STEP;
    p->boxes = p->order == CONV_PLANES   ? windows / 64
               : p->order == CONV_PIXELS ? CONV_STEP / p->line
                                         : 1;
    p->box_bytes = p->x_bytes / p->boxes;
}

static const tile_choice choices[] = {
    { "96", 96, false, false },  { "64", 64, false, false },   { "96x2", 96, true, false },
    { "64x2", 64, true, false }, { "192a", 192, false, true }, { "128a", 128, false, true },
    { "96a", 96, false, true },  { "64a", 64, false, true },   { "128x2a", 128, true, true },
    { "96x2a", 96, true, true }, { "64x2a", 64, true, true },
};
enum { CHOICES = sizeof choices / sizeof *choices };

/* Planes are copied by 64 windows; and where weights are unpacked sums take registers twice. */
static bool is_possible(const conv_product *p, const tile_choice *choice)
{
    if (p->order == CONV_PLANES && choice->n != 64 && choice->n != 128)
        return false;
    if (p->t.blocks.scale != NULL)
        return choice->alone && choice->n <= 96;
    return true;
}

/*
 * How long all tiles take a multiprocessor, in clocks, as fitted to measurements on an H200: those
 * of the busiest one, whose steps take as long as their copies, and results of a tile.  Two blocks
 * hide a part of each other's.
 */
static double cost_of(const ft_cuda_chip *chip, conv_product *p, const tile_choice *choice)
{
    share_out(p, choice);
    int rows = (p->w_bytes + p->x_bytes) / CONV_STEP;
    int places = chip->multiprocessors * (choice->alone ? 1 : 2);
    double tiles = cover(p->tiles, places);
    double step = choice->alone ? 3.0 * rows : 5.0 * rows;
    return tiles * (p->steps * step + (choice->alone ? 60.0 : 80.0) * choice->n);
}

static const tile_choice *choose(const ft_cuda_chip *chip, conv_product *p)
{
    const char *asked = getenv("FT_CUDA_CONV");
    const tile_choice *best = NULL;
    double least = 0.0;
    for (int i = 0; i < CHOICES; i++) {
        double cost = cost_of(chip, p, &choices[i]);
        if (!is_possible(p, &choices[i]))
            continue;
        if (asked != NULL && strcmp(asked, choices[i].name) == 0)
            return &choices[i];
        if (best == NULL || cost < least) {
            least = cost;
            best = &choices[i];
        }
    }
    return best;
}

/* ---- Launching ------------------------------------------------------------------------------ */

static int map_weights(conv_product *p)
{
    const conv_task *t = &p->t;
    unsigned rows = p->beside ? 64 : 128;
    if (t->blocks.scale != NULL)
        return 0;
    if (t->x_dtype == FT_I8)
        return ft_map_tiles(&p->w, t->tiles, (size_t) cover(t->outputs, 32),
                            (size_t) cover(t->window, CONV_STEP), rows);
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

/* Pixels that are windows lie in one run through all images, as all that is not cut by image. */
static bool runs_are_images(const conv_product *p)
{
    const ft_conv &c = p->t.conv;
    return p->order == CONV_PLANES ||
           (p->order == CONV_ROWS &&
            (c.kernel[1] != 1 || c.stride[1] != 1 || c.padding[1] != 0 || c.stride[0] != 1));
}

/* Neighbours of an output that are one store. */
static int together(const conv_task *t)
{
    int size = t->y_dtype == FT_I8 ? 1 : t->y_dtype == FT_F32 ? 4 : 2;
    bool aligned = (uintptr_t) t->y % 16 == 0;
    return aligned && t->positions * size % 16 == 0 ? 16 / size
           : aligned && t->positions % 4 == 0       ? 4
                                                    : 1;
}

/* An activation that cuts to a range is part of the range. */
static void set_range(conv_product *p)
{
    const ft_conv &c = p->t.conv;
    bool relu = p->t.activation == FT_ACT_RELU;
    p->activates = !relu && p->t.activation != FT_ACT_NONE;
    p->ranged = relu || c.clamps;
    p->low = !c.clamps ? 0.0f : relu && c.low < 0.0f ? 0.0f : c.low;
    p->high = c.clamps ? c.high : INFINITY;
}

static conv_product product_of(const conv_task *t, const conv_turned *turned)
{
    conv_product p = {};
    int size = t->x_dtype == FT_I8 ? 1 : 2;
    p.t = *t;
    p.order = turned->order;
    p.run = runs_are_images(&p) ? t->positions : t->images * t->positions;
    p.steps = cover(t->window * size, CONV_STEP);
    p.pixel = (int) turned->line;
    p.line = p.order != CONV_PIXELS || p.pixel % 128 == 0 ? 128 : p.pixel % 64 == 0 ? 64 : 32;
    for (int i = 0; i < 2; i++)
        p.padding[i] = t->conv.padding[i] - turned->frame[i];
    p.group = conv_divider_of(t->blocks.group == 0 ? INT32_MAX : t->blocks.group);
    p.group_steps = t->blocks.group == 0        ? p.steps
                    : t->blocks.group % 64 == 0 ? t->blocks.group / 64
                                                : 0;
    p.padded = (int) ft_layout_rows(FT_PANEL32, (size_t) t->outputs);
    p.together = together(t);
    set_range(&p);
    p.positions = conv_divider_of(t->positions);
    p.across = conv_divider_of(t->across);
    return p;
}

static int multiply(const ft_cuda_chip *chip, void *stream, conv_product *p,
                    const conv_turned *turned, const void *x)
{
    const tile_choice *choice = choose(chip, p);
    share_out(p, choice);
    int status = map_weights(p);
    if (status == 0)
        status = map_windows(p, turned, x);
    if (status != 0)
        return status;
    conv_launcher *launch = p->t.x_dtype == FT_I8       ? ft_cuda_conv_codes
                            : p->t.blocks.scale != NULL ? ft_cuda_conv_blocks
                                                        : ft_cuda_conv_halves;
    return launch(chip, stream, p, choice->n);
}

int ft_cuda_conv_wgmma(const ft_cuda_chip *chip, void *stream, const conv_task *t, void *scratch)
{
    conv_turned turned = ft_cuda_conv_order(t);
    conv_product p = product_of(t, &turned);
    int32_t *excess = (int32_t *) ((char *) scratch + turned_bytes(t, &turned));
    bool turns = turned.order != CONV_PLANES;
    int status = 0;
    if (t->conv.zero != 0) {
        p.excess = excess;
        status = ft_launch(excess_kernel, ft_cover((size_t) t->outputs * 32, EXCESS_THREADS),
                           EXCESS_THREADS, 0, stream, chip->overlaps, 1, excess,
                           (const int8_t *) t->w, t->outputs, t->window, t->conv.zero);
    }
    if (status == 0 && turns)
        status = ft_cuda_conv_turn(chip, stream, t, &turned, scratch);
    return status != 0 ? status : multiply(chip, stream, &p, &turned, turns ? scratch : t->x);
}
