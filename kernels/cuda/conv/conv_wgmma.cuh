/*
 * conv_wgmma.cuh - implicit-GEMM convolution on the tensor cores of sm_90a with NCHW output: y^T =
 * w . windows^T.
 *
 * Output channels are the rows of the GEMM and windows its columns, so a row of accumulators is
 * contiguous in an output plane and needs no transpose. A CTA has two consumer warpgroups and a
 * tile of
 *
 *   128 channels x N windows     each warpgroup has 64 of the channels, or
 *   64 channels x 2 N windows    each warpgroup has N of the windows.
 *
 * Windows are cut into K blocks of 128 bytes. One copy loads a K block of all weights of a tile,
 * and one or more TMA boxes load a K block of its windows: one tap of each window, or contiguous
 * bytes of a row (nchw_to_nhwc.cuh). Group-wise quantized weights are copied as stored and
 * dequantized to shared memory by another producer warpgroup; the accumulators of each group are
 * multiplied by its scales. If groups are multiples of 128 columns, consumers dequantize to
 * registers instead: conv_register_a.cuh.
 *
 * A sum adds its K blocks in order for every tile shape. Split-K sums two halves, which depends on
 * the shape of windows and of an image, never on the number of images.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_CONV_CONV_WGMMA_CUH
#define FT_KERNELS_CUDA_CONV_CONV_WGMMA_CUH

#include "kernels/cuda/conv/nchw_to_nhwc.cuh"
#include "kernels/cuda/ptx/tma.cuh"

enum {
    CONV_WARPGROUP = 128,                /* threads of a warpgroup */
    CONV_CONSUMERS = 2 * CONV_WARPGROUP, /* threads of both consumer warpgroups */
    CONV_K_BLOCK = 128,                  /* bytes of a K block of a window */
    CONV_MAX_STAGES = 8,                 /* maximum pipeline stages */
    CONV_STAGED_WINDOWS = 32,            /* windows that a warp stages at a time in the epilogue */
    CONV_REGISTER_A_OUTPUTS = 128,       /* output channels of a register-A tile */
    CONV_SPLIT_K_WINDOWS = 104,          /* windows of a tile that two CTAs share */
    CONV_PANEL = 8192,                   /* bytes of 64 windows x 64 channels of NCHW input */
    CONV_STAGED_BYTES = 16 * CONV_STAGED_WINDOWS * 4, /* bytes of a warp's staged accumulators */
    CONV_STORAGE_BYTES =
        CONV_CONSUMERS / 32 * CONV_STAGED_BYTES + 24 * CONV_MAX_STAGES, /* bytes after the stages */
};

/*
 * n / by for n below 2^31 by a multiplication, because a division would take the producer thread
 * hundreds of clocks. multiplier = 2^shift / by, rounded up, and 2^(shift - 31) is at least by.
 */
typedef struct conv_divider {
    uint32_t multiplier;
    int shift, divisor;
} conv_divider;

static inline conv_divider conv_divider_of(int divisor)
{
    int shift = 31;
    while ((int64_t) 1 << (shift - 31) < divisor)
        shift++;
    conv_divider divider = { (uint32_t) ((((uint64_t) 1 << shift) + (unsigned) divisor - 1) /
                                         (unsigned) divisor),
                             shift, divisor };
    return divider;
}

__device__ __forceinline__ int conv_divide(int n, const conv_divider &divider)
{
    return (int) ((uint64_t) (unsigned) n * divider.multiplier >> divider.shift);
}

/*
 * Kernel parameters are fetched in lines of 64 bytes on first use, and the thread waits for each.
 * What CTAs need before their first MMA is therefore stored together, directly after the tensor
 * maps.
 */
typedef struct conv_gemm_params {
    CUtensorMap w, x, y;         /* y: register-A kernels */
    int tiles, concurrent_tiles; /* register-A: tiles that run concurrently */
    int split_k_ctas;            /* register-A: as in conv_nhwc_tile */
    int k_blocks, line;          /* line: bytes of a row of a TMA box */
    conv_layout layout_kind;
    int group_k_tiles; /* group-wise: K tiles of a group; 0: not a multiple */
    int tile_outputs, tile_windows;
    conv_divider out_tiles,
        segment_tiles; /* tiles of output channels; tiles of windows of a segment */
    int segment;       /* windows of a segment, whose end tiles do not cross */
    conv_problem_args t;
    bool split_windows,
        one_cta_per_sm; /* one_cta_per_sm: one CTA per multiprocessor, with twice the stages */
    int stages;
    conv_divider out_pixels, per_row; /* as in the problem */
    int w_bytes, x_bytes, box_bytes;  /* of a stage; and of a box of windows */
    int packed_bytes;                 /* group-wise: quantized weights of a stage; otherwise 0 */
    int boxes;                        /* boxes per K block */
    int pixel;                        /* NHWC input: bytes of a pixel */
    int padding[2];                   /* NHWC input: padding beyond the stored border */
    const int32_t *zp_correction; /* int8: zero-point correction of sums, [out_channels], or NULL */
    bool register_a;              /* group-wise: weights in registers, conv_register_a.cuh */
    int group_k_blocks;           /* group-wise: K blocks of a group; 0: scales per 32 columns */
    conv_divider group;           /* group-wise: columns of a group */
    int padded_rows;              /* group-wise: rows of scales */
    int store_width;              /* consecutive results in one store: 1, 4, or 16 bytes */
    bool stores_x8, interleaved;  /* NHWC: eight channels per store; ft_tma_map_interleaved() */
    bool has_activation, clamps_output; /* activation that is no clamp; clamp to low .. high */
    float low, high;
    int q_min, q_max; /* the clamp as int8 values plus 128 */
} conv_gemm_params;

/*
 * Kernel traits: dtype of the windows, bits of group-wise weights or 0, windows per warpgroup, NCHW
 * input.
 */
template <ft_dtype DTYPE, int BITS, int N, bool PLANES> struct conv_traits {
    static constexpr ft_dtype dtype = DTYPE;
    static constexpr int bits = BITS, windows = N;
    static constexpr bool planes = PLANES, register_a = false;
    static constexpr int threads = CONV_CONSUMERS + (BITS > 0 ? 2 * CONV_WARPGROUP : 32);
    static constexpr int producers = BITS > 0 ? 2 : 1; /* producer threads that issue copies */
    static constexpr int ctas_per_sm = BITS > 0 || N > 96 ? 1 : 2; /* CTAs per multiprocessor */
};

/* Bytes of a stage; with group-wise weights including the quantized weights and zero points. */
FT_HOST_DEVICE int conv_stage_bytes(const conv_gemm_params &p)
{
    return p.w_bytes + p.x_bytes + p.packed_bytes + (p.packed_bytes > 0 ? 2 * p.tile_outputs : 0);
}

/* NCHW output, with `n` windows per warpgroup. */
typedef int conv_nchw_launcher(const ft_cuda_device_props *props, void *stream, conv_gemm_params *p,
                               int n);
conv_nchw_launcher ft_cuda_conv_nchw_int8, ft_cuda_conv_nchw_f16, ft_cuda_conv_nchw_groupwise;

/* NHWC output: conv_nhwc.cuh. */
typedef struct conv_nhwc_tile {
    const char *name;
    int windows, out_channels; /* of a tile */
    bool pingpong, general;
    bool register_a;                /* group-wise weights in registers: conv_register_a.cuh */
    bool for_groupwise, for_others; /* whether there is a kernel for these weights */
    int split_k_ctas; /* register-A: CTAs that compute the halves of a split-K sum, or 0 */
} conv_nhwc_tile;

typedef int conv_nhwc_launcher(const ft_cuda_device_props *props, void *stream, conv_gemm_params *p,
                               const conv_nhwc_tile *tile);
conv_nhwc_launcher ft_cuda_conv_nhwc_int8, ft_cuda_conv_nhwc_f16, ft_cuda_conv_nhwc_groupwise;

/* NCHW or NHWC output, with register-A group-wise weights. */
int ft_cuda_conv_register_a(const ft_cuda_device_props *props, void *stream, conv_gemm_params *p);

/* Selects a tile for NCHW or NHWC output and sets the tile fields of *p. */
int ft_cuda_conv_select_nchw_tile(const ft_cuda_device_props *props, conv_gemm_params *p);
const conv_nhwc_tile *ft_cuda_conv_select_nhwc_tile(const ft_cuda_device_props *props,
                                                    conv_gemm_params *p);

#endif
