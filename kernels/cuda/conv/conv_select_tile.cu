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

static void set_tile(conv_gemm_params *p, int out_channels, int windows)
{
    int segments = p->t.images * p->t.out_pixels / p->segment;
    p->tile_outputs = out_channels;
    p->tile_windows = windows;
    p->out_tiles = conv_divider_of(ft_ceil_div(p->t.out_channels, out_channels));
    p->segment_tiles = conv_divider_of(ft_ceil_div(p->segment, windows));
    p->tiles = p->out_tiles.divisor * p->segment_tiles.divisor * segments;
    p->w_bytes = out_channels * CONV_K_BLOCK;
    p->x_bytes = windows * CONV_K_BLOCK;
    p->packed_bytes = 8 * ft_groupwise_bits(p->t.w_dtype) * out_channels;
    p->boxes = p->layout_kind == CONV_LAYOUT_NCHW   ? windows / 64
               : p->layout_kind == CONV_LAYOUT_NHWC ? CONV_K_BLOCK / p->line
                                                    : 1;
    p->box_bytes = p->x_bytes / p->boxes;
}

/*
 * Factors from microseconds to the units of the cost functions below, fitted to measurements of
 * neighbouring tiles.
 */
enum { NCHW_CLOCKS = 1500, NHWC_CLOCKS = 2500 };

/*
 * Groups are multiples of K tiles, windows are rows, and more output channels than half of a tile.
 */
static bool supports_register_a(const conv_gemm_params *p)
{
    return p->t.groupwise.scale != NULL && p->group_k_tiles > 0 &&
           p->layout_kind != CONV_LAYOUT_NCHW && p->t.out_channels > 64;
}

/*
 * Microseconds for all tiles with register-A weights, fitted to measurements on an H200: a K tile
 * of 128 columns, whatever the number of valid channels; the epilogue; and the exchange of split-K
 * sums.
 */
static double register_a_microseconds(const ft_cuda_device_props *props, const conv_gemm_params *p)
{
    int cluster_size = p->split_k_ctas == 2 ? 2 : 1;
    double waves = ft_ceil_div(p->tiles, props->sm_count / cluster_size);
    double segments = ft_ceil_div(ft_ceil_div(p->k_blocks, 2), cluster_size);
    double exchange = p->split_k_ctas == 2 ? 3.7 : p->split_k_ctas == 1 ? 2.5 : 0.0;
    return waves *
           (segments * (0.36 + 0.0027 * p->tile_windows) + 0.0075 * p->tile_windows + exchange);
}

/* ---- NCHW output ---------------------------------------------------------------------------- */

/*
 * Windows per warpgroup, and the fields of conv_gemm_params. In names with x2 the warpgroups split
 * the windows; those with a have one CTA per multiprocessor.
 */
typedef struct conv_nchw_tile {
    const char *name;
    int n;
    bool split_windows;
    bool one_cta_per_sm;
    bool register_a; /* group-wise weights in registers: conv_register_a.cuh */
} conv_nchw_tile;

static void set_nchw_tile(conv_gemm_params *p, const conv_nchw_tile *tile_entry)
{
    p->split_windows = tile_entry->split_windows;
    p->one_cta_per_sm = tile_entry->one_cta_per_sm;
    p->register_a = tile_entry->register_a;
    set_tile(p, tile_entry->split_windows ? 64 : 128,
             tile_entry->split_windows ? 2 * tile_entry->n : tile_entry->n);
}

static const conv_nchw_tile nchw_tiles[] = {
    { "96", 96, false, false, false },    { "64", 64, false, false, false },
    { "96x2", 96, true, false, false },   { "64x2", 64, true, false, false },
    { "192a", 192, false, true, false },  { "128a", 128, false, true, false },
    { "96a", 96, false, true, false },    { "64a", 64, false, true, false },
    { "128x2a", 128, true, true, false }, { "96x2a", 96, true, true, false },
    { "64x2a", 64, true, true, false },   { "ra64", 64, false, true, true },
    { "ra96", 96, false, true, true },
};

/*
 * NCHW input is copied in boxes of 64 windows. Unpacked weights need registers for two sets of
 * accumulators.
 */
static bool is_possible(const conv_gemm_params *p, const conv_nchw_tile *tile_entry)
{
    if (tile_entry->register_a)
        return supports_register_a(p);
    if (p->layout_kind == CONV_LAYOUT_NCHW && tile_entry->n != 64 && tile_entry->n != 128)
        return false;
    if (p->t.groupwise.scale != NULL)
        return tile_entry->one_cta_per_sm && tile_entry->n <= 96;
    return true;
}

static bool keeps_sum_order(const conv_gemm_params *, const conv_nchw_tile *)
{
    return true;
}

/*
 * Clocks per multiprocessor for all tiles, fitted to measurements on an H200: the tiles of the
 * busiest one, whose K blocks take as long as their copies, plus the epilogue of a tile. Two CTAs
 * hide part of each other's latency.
 */
static double cost_of(const ft_cuda_device_props *props, conv_gemm_params *p,
                      const conv_nchw_tile *tile_entry)
{
    set_nchw_tile(p, tile_entry);
    if (tile_entry->register_a)
        return NCHW_CLOCKS * register_a_microseconds(props, p);
    int rows = (p->w_bytes + p->x_bytes) / CONV_K_BLOCK;
    int concurrent_tiles = props->sm_count * (tile_entry->one_cta_per_sm ? 1 : 2);
    double tiles = ft_ceil_div(p->tiles, concurrent_tiles);
    double step = tile_entry->one_cta_per_sm ? 3.0 * rows : 5.0 * rows;
    return tiles *
           (p->k_blocks * step + (tile_entry->one_cta_per_sm ? 60.0 : 80.0) * tile_entry->n);
}

/* ---- NHWC output ---------------------------------------------------------------------------- */

/*
 * Windows x output channels; t: ping-pong. Some tiles are best only with group-wise weights, some
 * only without.
 */
static const conv_nhwc_tile nhwc_tiles[] = {
    { "128x128", 128, 128, false, false, false, true, true },
    { "256x64", 256, 64, false, false, false, true, true },
    { "128x64t", 128, 64, true, false, false, true, true },
    { "128x64", 128, 64, false, false, false, true, false },
    { "128x128t", 128, 128, true, false, false, false, true },
    { "64x128t", 64, 128, true, false, false, false, true },
    { "general", 128, 64, false, true, false, true, true },
    { "ra48", 48, 128, false, false, true, true, false },
    { "ra64", 64, 128, false, false, true, true, false },
    { "ra96", 96, 128, false, false, true, true, false },
    { "ra128", 128, 128, false, false, true, true, false },
    { "ra104/2", CONV_SPLIT_K_WINDOWS, 128, false, false, true, true, false, 2 },
    { "ra128/1", 128, 128, false, false, true, true, false, 1 },
};

/*
 * Kernels that are not general have no activation besides clamps, and store eight channels at once.
 * Register-A kernels of 64 and 96 windows support both. Scales per 32 columns leave registers for
 * few accumulators.
 */
static bool is_possible(const conv_gemm_params *p, const conv_nhwc_tile *tile)
{
    bool blocks = p->t.groupwise.scale != NULL;
    bool has_direct_store = !p->has_activation && p->stores_x8;
    if (tile->split_k_ctas > 0)
        return supports_register_a(p) && has_direct_store &&
               p->k_blocks > 2; /* each split has a K tile */
    if (tile->register_a)
        return supports_register_a(p) &&
               (has_direct_store || tile->windows == 64 || tile->windows == 96);
    int sums =
        tile->windows * tile->out_channels * (tile->pingpong ? 2 : 1); /* of both warpgroups */
    if (blocks && p->group_k_blocks == 0 && sums > 8192)
        return false;
    return (blocks ? tile->for_groupwise : tile->for_others) && (tile->general || has_direct_store);
}

enum { SPLIT_K_MAX_WINDOWS = 64, SPLIT_K_MIN_K_BLOCKS = 32 };

/*
 * Split-K is used if one image has so few windows, and a window so many K blocks, that it saves
 * time up to tens of images; beyond that it costs a little. The number of images may not decide,
 * because an image gets the same bits alone.
 */
static bool uses_split_k(const conv_gemm_params *p)
{
    return supports_register_a(p) && !p->has_activation && p->stores_x8 &&
           p->t.out_pixels <= SPLIT_K_MAX_WINDOWS && p->k_blocks >= SPLIT_K_MIN_K_BLOCKS;
}

/* Whether the tile has the summation order of the default choice. */
static bool keeps_sum_order(const conv_gemm_params *p, const conv_nhwc_tile *tile)
{
    return (tile->split_k_ctas > 0) == uses_split_k(p);
}

static void set_nhwc_tile(conv_gemm_params *p, const conv_nhwc_tile *tile)
{
    p->split_windows = tile->out_channels == 64;
    p->register_a = tile->register_a;
    p->split_k_ctas = tile->split_k_ctas;
    p->interleaved = !tile->general && p->t.x_dtype != FT_I8 && p->t.groupwise.scale == NULL;
    set_tile(p, tile->out_channels, tile->windows);
}

/*
 * Clocks of the busiest multiprocessor for all tiles, fitted to measurements on an H200: K blocks
 * take as long as their copies and unpacking, or as their MMAs. Ping-pong warpgroups overlap all
 * epilogues but the last with the other's main loop.
 */
static double cost_of(const ft_cuda_device_props *props, conv_gemm_params *p,
                      const conv_nhwc_tile *tile)
{
    set_nhwc_tile(p, tile);
    bool blocks = p->t.groupwise.scale != NULL;
    double waves = ft_ceil_div(p->tiles, props->sm_count);
    double area = tile->windows * tile->out_channels, finish = area / (blocks ? 9 : 16);
    double copy_clocks = blocks ? 4.1 * tile->windows + 6.1 * tile->out_channels
                                : 4.6 * tile->windows + 2.75 * tile->out_channels;
    double mma_clocks = area / (blocks ? 32 : 21);
    double steps = waves * p->k_blocks * (copy_clocks > mma_clocks ? copy_clocks : mma_clocks);
    if (tile->register_a)
        return NHWC_CLOCKS * register_a_microseconds(props, p);
    if (tile->general)
        return INFINITY;
    if (tile->pingpong)
        return (steps > waves * finish ? steps : waves * finish) + finish;
    return steps + waves * finish;
}

/* ---- Selection ------------------------------------------------------------------------------ */

/*
 * The tile with the least cost among those that are possible and keep the default summation order,
 * or the tile named by FT_CUDA_CONV.
 */
template <typename TILE, int count>
static const TILE *best_of(const ft_cuda_device_props *props, conv_gemm_params *p,
                           const TILE (&tiles)[count])
{
    const char *name = getenv("FT_CUDA_CONV");
    const TILE *best = NULL;
    double min_cost = 0.0;
    for (const TILE &tile : tiles) {
        bool is_forced = name != NULL && strcmp(name, tile.name) == 0;
        if (!is_possible(p, &tile) || !(is_forced || keeps_sum_order(p, &tile)))
            continue;
        double cost = is_forced ? -1.0 : cost_of(props, p, &tile);
        if (best == NULL || cost < min_cost) {
            min_cost = cost;
            best = &tile;
        }
    }
    return best;
}

int ft_cuda_conv_select_nchw_tile(const ft_cuda_device_props *props, conv_gemm_params *p)
{
    const conv_nchw_tile *best = best_of(props, p, nchw_tiles);
    set_nchw_tile(p, best);
    return best->n;
}

const conv_nhwc_tile *ft_cuda_conv_select_nhwc_tile(const ft_cuda_device_props *props,
                                                    conv_gemm_params *p)
{
    const conv_nhwc_tile *best = best_of(props, p, nhwc_tiles);
    set_nhwc_tile(p, best);
    return best;
}
