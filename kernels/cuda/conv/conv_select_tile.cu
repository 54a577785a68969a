/*
 * conv_select_tile.cu - selects the tile shape of a convolution on the tensor cores of sm_90a.
 *
 * The choice affects time only. The environment variable FT_CUDA_CONV forces a tile by its name.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/conv/conv_wgmma.cuh"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void share_out(conv_product *p, int outputs, int windows)
{
    int runs = p->t.images * p->t.positions / p->run;
    p->tile_outputs = outputs;
    p->tile_windows = windows;
    p->out_tiles = conv_divider_of(conv_cover(p->t.outputs, outputs));
    p->run_tiles = conv_divider_of(conv_cover(p->run, windows));
    p->tiles = p->out_tiles.by * p->run_tiles.by * runs;
    p->w_bytes = outputs * CONV_STEP;
    p->x_bytes = windows * CONV_STEP;
    p->packed_bytes = 8 * ft_blocks_bits(p->t.w_dtype) * outputs;
    p->boxes = p->order == CONV_PLANES   ? windows / 64
               : p->order == CONV_PIXELS ? CONV_STEP / p->line
                                         : 1;
    p->box_bytes = p->x_bytes / p->boxes;
}

/*
 * Factors from microseconds to the units of the cost functions below, fitted to measurements of
 * neighbouring tiles.
 */
enum { PLANES_CLOCKS = 1500, PIXELS_CLOCKS = 2500 };

/*
 * Groups are multiples of K tiles, windows are rows, and more output channels than half of a tile.
 */
static bool may_be_held(const conv_product *p)
{
    return p->t.blocks.scale != NULL && p->group_runs > 0 && p->order != CONV_PLANES &&
           p->t.outputs > 64;
}

/*
 * Microseconds for all tiles with register-A weights, fitted to measurements on an H200: a K tile
 * of 128 columns, whatever the number of valid channels; the epilogue; and the exchange of split-K
 * sums.
 */
static double time_held(const ft_cuda_chip *chip, const conv_product *p)
{
    int together = p->halves == 2 ? 2 : 1;
    double rounds = conv_cover(p->tiles, chip->multiprocessors / together);
    double runs = conv_cover(conv_cover(p->steps, 2), together);
    double exchange = p->halves == 2 ? 3.7 : p->halves == 1 ? 2.5 : 0.0;
    return rounds *
           (runs * (0.36 + 0.0027 * p->tile_windows) + 0.0075 * p->tile_windows + exchange);
}

/* ---- NCHW output ---------------------------------------------------------------------------- */

/*
 * Windows per warpgroup, and the fields of conv_product. In names with x2 the warpgroups split the
 * windows; those with a have one CTA per multiprocessor.
 */
typedef struct tile_choice {
    const char *name;
    int n;
    bool beside;
    bool alone;
    bool held; /* group-wise weights in registers: conv_register_a.cuh */
} tile_choice;

static void share_out_planes(conv_product *p, const tile_choice *choice)
{
    p->beside = choice->beside;
    p->alone = choice->alone;
    p->held = choice->held;
    share_out(p, choice->beside ? 64 : 128, choice->beside ? 2 * choice->n : choice->n);
}

static const tile_choice choices[] = {
    { "96", 96, false, false, false },    { "64", 64, false, false, false },
    { "96x2", 96, true, false, false },   { "64x2", 64, true, false, false },
    { "192a", 192, false, true, false },  { "128a", 128, false, true, false },
    { "96a", 96, false, true, false },    { "64a", 64, false, true, false },
    { "128x2a", 128, true, true, false }, { "96x2a", 96, true, true, false },
    { "64x2a", 64, true, true, false },   { "held64", 64, false, true, true },
    { "held96", 96, false, true, true },
};

/*
 * NCHW input is copied in boxes of 64 windows. Unpacked weights need registers for two sets of
 * accumulators.
 */
static bool is_possible(const conv_product *p, const tile_choice *choice)
{
    if (choice->held)
        return may_be_held(p);
    if (p->order == CONV_PLANES && choice->n != 64 && choice->n != 128)
        return false;
    if (p->t.blocks.scale != NULL)
        return choice->alone && choice->n <= 96;
    return true;
}

static bool is_ours(const conv_product *, const tile_choice *)
{
    return true;
}

/*
 * Clocks per multiprocessor for all tiles, fitted to measurements on an H200: the tiles of the
 * busiest one, whose K blocks take as long as their copies, plus the epilogue of a tile. Two CTAs
 * hide part of each other's latency.
 */
static double cost_of(const ft_cuda_chip *chip, conv_product *p, const tile_choice *choice)
{
    share_out_planes(p, choice);
    if (choice->held)
        return PLANES_CLOCKS * time_held(chip, p);
    int rows = (p->w_bytes + p->x_bytes) / CONV_STEP;
    int places = chip->multiprocessors * (choice->alone ? 1 : 2);
    double tiles = conv_cover(p->tiles, places);
    double step = choice->alone ? 3.0 * rows : 5.0 * rows;
    return tiles * (p->steps * step + (choice->alone ? 60.0 : 80.0) * choice->n);
}

/* ---- NHWC output ---------------------------------------------------------------------------- */

/*
 * Windows x output channels; t: ping-pong. Some tiles are best only with group-wise weights, some
 * only without.
 */
static const conv_rows_tile rows_tiles[] = {
    { "128x128", 128, 128, false, false, false, true, true },
    { "256x64", 256, 64, false, false, false, true, true },
    { "128x64t", 128, 64, true, false, false, true, true },
    { "128x64", 128, 64, false, false, false, true, false },
    { "128x128t", 128, 128, true, false, false, false, true },
    { "64x128t", 64, 128, true, false, false, false, true },
    { "general", 128, 64, false, true, false, true, true },
    { "held48", 48, 128, false, false, true, true, false },
    { "held64", 64, 128, false, false, true, true, false },
    { "held96", 96, 128, false, false, true, true, false },
    { "held128", 128, 128, false, false, true, true, false },
    { "held104s", CONV_SHARED_WINDOWS, 128, false, false, true, true, false, 2 },
    { "held128h", 128, 128, false, false, true, true, false, 1 },
};

/*
 * Kernels that are not general have no activation besides clamps, and store eight channels at once.
 * Register-A kernels of 64 and 96 windows support both. Scales per 32 columns leave registers for
 * few accumulators.
 */
static bool is_possible(const conv_product *p, const conv_rows_tile *tile)
{
    bool blocks = p->t.blocks.scale != NULL;
    bool plain = !p->activates && p->eights;
    if (tile->halves > 0)
        return may_be_held(p) && plain && p->steps > 2; /* each split has a K tile */
    if (tile->held)
        return may_be_held(p) && (plain || tile->windows == 64 || tile->windows == 96);
    int sums = tile->windows * tile->outputs * (tile->turns ? 2 : 1); /* of both warpgroups */
    if (blocks && p->group_steps == 0 && sums > 8192)
        return false;
    return (blocks ? tile->of_blocks : tile->of_others) && (tile->general || plain);
}

enum { HALVES_WINDOWS = 64, HALVES_STEPS = 32 };

/*
 * Split-K is used if one image has so few windows, and a window so many K blocks, that it saves
 * time up to tens of images; beyond that it costs a little. The number of images may not decide,
 * because an image gets the same bits alone.
 */
static bool has_halves(const conv_product *p)
{
    return may_be_held(p) && !p->activates && p->eights && p->t.positions <= HALVES_WINDOWS &&
           p->steps >= HALVES_STEPS;
}

/* Whether the tile has the summation order of the default choice. */
static bool is_ours(const conv_product *p, const conv_rows_tile *tile)
{
    return (tile->halves > 0) == has_halves(p);
}

static void share_out_pixels(conv_product *p, const conv_rows_tile *tile)
{
    p->beside = tile->outputs == 64;
    p->held = tile->held;
    p->halves = tile->halves;
    p->woven = !tile->general && p->t.x_dtype != FT_I8 && p->t.blocks.scale == NULL;
    share_out(p, tile->outputs, tile->windows);
}

/*
 * Clocks of the busiest multiprocessor for all tiles, fitted to measurements on an H200: K blocks
 * take as long as their copies and unpacking, or as their MMAs. Ping-pong warpgroups overlap all
 * epilogues but the last with the other's main loop.
 */
static double cost_of(const ft_cuda_chip *chip, conv_product *p, const conv_rows_tile *tile)
{
    share_out_pixels(p, tile);
    bool blocks = p->t.blocks.scale != NULL;
    double rounds = conv_cover(p->tiles, chip->multiprocessors);
    double area = tile->windows * tile->outputs, finish = area / (blocks ? 9 : 16);
    double copied = blocks ? 4.1 * tile->windows + 6.1 * tile->outputs
                           : 4.6 * tile->windows + 2.75 * tile->outputs;
    double multiplied = area / (blocks ? 32 : 21);
    double steps = rounds * p->steps * (copied > multiplied ? copied : multiplied);
    if (tile->held)
        return PIXELS_CLOCKS * time_held(chip, p);
    if (tile->general)
        return INFINITY;
    if (tile->turns)
        return (steps > rounds * finish ? steps : rounds * finish) + finish;
    return steps + rounds * finish;
}

/* ---- Selection ------------------------------------------------------------------------------ */

/*
 * The tile with the least cost among those that are possible and keep the default summation order,
 * or the tile named by FT_CUDA_CONV.
 */
template <typename TILE, int count>
static const TILE *best_of(const ft_cuda_chip *chip, conv_product *p, const TILE (&tiles)[count])
{
    const char *name = getenv("FT_CUDA_CONV");
    const TILE *best = NULL;
    double least = 0.0;
    for (const TILE &tile : tiles) {
        bool asked = name != NULL && strcmp(name, tile.name) == 0;
        if (!is_possible(p, &tile) || !(asked || is_ours(p, &tile)))
            continue;
        double cost = asked ? -1.0 : cost_of(chip, p, &tile);
        if (best == NULL || cost < least) {
            least = cost;
            best = &tile;
        }
    }
    return best;
}

int ft_cuda_conv_choose(const ft_cuda_chip *chip, conv_product *p)
{
    const tile_choice *best = best_of(chip, p, choices);
    share_out_planes(p, best);
    return best->n;
}

const conv_rows_tile *ft_cuda_conv_choose_rows(const ft_cuda_chip *chip, conv_product *p)
{
    const conv_rows_tile *best = best_of(chip, p, rows_tiles);
    share_out_pixels(p, best);
    return best;
}
