/*
 * conv_wgmma.cuh - convolutions as products on the tensor cores of sm_90a: y^T = w . windows^T.
 *
 * Outputs are the rows of a product and windows its columns, so a row of sums is a stretch of a
 * plane of the result, and nothing is turned back.  A block of two teams, warpgroups that
 * multiply, has a tile of
 *
 *   128 outputs x N windows     each team has 64 of the outputs, or
 *   64 outputs x 2 N windows    each team has N of the windows: beside each other.
 *
 * Windows are cut into steps of 128 bytes.  A copy brings a step of all weights of a tile, and one
 * or more boxes a step of its windows: one tap of each, or a stretch of a row (nchw_to_nhwc.cuh).
 * Weights in blocks are copied as they are, and unpacked to shared memory by one more warpgroup;
 * what they are multiplied by is up to the sums of each group.  Where groups are whole runs of 128
 * columns, teams unpack them to their registers: conv_register_a.cuh.
 *
 * A sum takes its steps in their order, whatever the tile; or two halves of them do so and are
 * added, which is up to the shape of windows and of an image, never to the number of images.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_CONV_CONV_WGMMA_CUH
#define FT_KERNELS_CUDA_CONV_CONV_WGMMA_CUH

#include "kernels/cuda/conv/nchw_to_nhwc.cuh"
#include "kernels/cuda/ptx/tma.cuh"

enum {
    CONV_TEAM = 128,               /* threads */
    CONV_WORKERS = 2 * CONV_TEAM,  /* of both teams */
    CONV_STEP = 128,               /* bytes of a window */
    CONV_STAGES = 8,               /* at most */
    CONV_LAID = 32,                /* windows that a warp lays out at a time */
    CONV_HELD_OUTPUTS = 128,       /* of a tile of weights that are held */
    CONV_SHARED_WINDOWS = 104,     /* of one that two blocks share */
    CONV_PANEL = 8192,             /* bytes of 64 windows x 64 channels, of planes */
    CONV_LAY = 16 * CONV_LAID * 4, /* bytes of a warp's sums */
    CONV_REST = CONV_WORKERS / 32 * CONV_LAY + 24 * CONV_STAGES, /* bytes behind the stages */
};

/*
 * n / by for n below 2^31, by a product: the thread that copies would take hundreds of clocks to
 * divide.  multiplier = 2^shift / by, rounded up, and 2^(shift - 31) is at least by.
 */
typedef struct conv_divider {
    uint32_t multiplier;
    int shift, by;
} conv_divider;

static inline conv_divider conv_divider_of(int by)
{
    int shift = 31;
    while ((int64_t) 1 << (shift - 31) < by)
        shift++;
    conv_divider divider = {
        (uint32_t) ((((uint64_t) 1 << shift) + (unsigned) by - 1) / (unsigned) by), shift, by
    };
    return divider;
}

__device__ __forceinline__ int conv_divide(int n, const conv_divider &divider)
{
    return (int) ((uint64_t) (unsigned) n * divider.multiplier >> divider.shift);
}

/*
 * Parameters come to a multiprocessor by lines of 64 bytes, each when it is first asked for, and
 * who asks waits.  So what blocks ask for before their first product lies together behind the maps.
 */
typedef struct conv_product {
    CUtensorMap w, x, y; /* y: of held weights */
    int tiles, places;   /* places: held: tiles that are computed at a time */
    int halves;          /* held: as conv_rows_tile has it */
    int steps, line;     /* line: bytes of a row of a box */
    conv_order order;
    int group_runs; /* blocks: runs of a group that are held; 0: it is none */
    int tile_outputs, tile_windows;
    conv_divider out_tiles, run_tiles; /* tiles of outputs; of windows of a run */
    int run;                           /* windows that tiles may not cross the end of */
    conv_task t;
    bool beside, alone; /* alone: one block a multiprocessor, with twice as many stages */
    int stages;
    conv_divider positions, across;  /* as the task has them */
    int w_bytes, x_bytes, box_bytes; /* of a stage; and of a box of windows */
    int packed_bytes;                /* blocks: codes of a stage; 0 elsewhere */
    int boxes;                       /* of a step */
    int pixel;                       /* pixels: bytes of one */
    int padding[2];                  /* pixels: beyond the frame */
    const int32_t *excess;           /* codes: what sums contain too much, [outputs], or NULL */
    bool held;                       /* blocks: in registers, conv_register_a.cuh */
    int group_steps;                 /* blocks: steps of a group; 0: every 32 columns are scaled */
    conv_divider group;              /* blocks: columns of a group */
    int padded;                      /* blocks: rows of scales */
    int together;                    /* neighbouring results that are one store: 1, 4, 16 bytes */
    bool eights, woven;              /* pixels: results are stored by eights; ft_map_woven() */
    bool activates, ranged;          /* by an activation that is no range; to low .. high */
    float low, high;
    int lowest, highest; /* the range in codes from -128 on */
} conv_product;

/* A kernel: type of windows, bits of blocks or 0, windows of a team, windows in planes. */
template <ft_dtype DTYPE, int BITS, int N, bool PLANES> struct conv_form {
    static constexpr ft_dtype dtype = DTYPE;
    static constexpr int bits = BITS, windows = N;
    static constexpr bool planes = PLANES, held = false;
    static constexpr int threads = CONV_WORKERS + (BITS > 0 ? 2 * CONV_TEAM : 32);
    static constexpr int loaders = BITS > 0 ? 2 : 1;            /* threads that copy */
    static constexpr int together = BITS > 0 || N > 96 ? 1 : 2; /* blocks of a multiprocessor */
};

/* Bytes of a stage, beside weights in blocks with their codes and zeros. */
FT_HOST_DEVICE int conv_stage_bytes(const conv_product &p)
{
    return p.w_bytes + p.x_bytes + p.packed_bytes + (p.packed_bytes > 0 ? 2 * p.tile_outputs : 0);
}

static inline int conv_cover(int n, int by)
{
    return (n + by - 1) / by;
}

/* To planes, with teams of `n` windows. */
typedef int conv_launcher(const ft_cuda_chip *chip, void *stream, conv_product *p, int n);
conv_launcher ft_cuda_conv_codes, ft_cuda_conv_halves, ft_cuda_conv_blocks;

/* To pixels: conv_nhwc.cuh. */
typedef struct conv_rows_tile {
    const char *name;
    int windows, outputs; /* of a tile */
    bool turns, general;
    bool held;                 /* weights in blocks, in registers: conv_register_a.cuh */
    bool of_blocks, of_others; /* for which weights there is a kernel */
    int halves; /* held: blocks that have the halves of a sum, or 0: conv_register_a_split_k.cuh */
} conv_rows_tile;

typedef int conv_rows_launcher(const ft_cuda_chip *chip, void *stream, conv_product *p,
                               const conv_rows_tile *tile);
conv_rows_launcher ft_cuda_conv_rows_codes, ft_cuda_conv_rows_halves, ft_cuda_conv_rows_blocks;

/* Either, with weights in blocks that are held. */
int ft_cuda_conv_held(const ft_cuda_chip *chip, void *stream, conv_product *p);

/* The tile of either; it is shared out in *p. */
int ft_cuda_conv_choose(const ft_cuda_chip *chip, conv_product *p);
const conv_rows_tile *ft_cuda_conv_choose_rows(const ft_cuda_chip *chip, conv_product *p);

#endif
