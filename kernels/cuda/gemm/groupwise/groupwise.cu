/*
 * groupwise.cu - kernel selection for GEMM with group-wise quantized weights.
 *
 * Up to eight rows, if shared memory has room for them, are bound by reading the weights and use a
 * GEMV, or a specialized one for one or two rows. 4-bit weights may be streamed twice: 8 rows of
 * 4096 x 11008 take 18.8 us so on an H200, and 19 to 23 in an MMA tile of 16 rows. Larger m uses
 * MMA tiles, which reuse weights. int8 activations have kernels of their own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/groupwise/groupwise_gemv.cuh"
#include "kernels/cuda/gemm/groupwise/decode_gemv.h"

extern "C" const char *ft_cuda_blocks_name(ft_cuda_blocks_way way)
{
    static const char *const name[FT_CUDA_BLOCKS_WAYS] = { "step",  "few",   "tiles",
                                                           "wgmma", "plain", "codes" };
    return name[way];
}

/* Whether to use the GEMV, once or, with 4-bit weights, twice. */
static bool suits_few(const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    size_t rows = ft_cuda_blocks_few_rows(chip, p);
    return p->m <= rows || (p->bits == 4 && p->m <= FEW_TOKENS && p->m <= 2 * rows);
}

static bool step_takes(const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    return ft_cuda_blocks_step_takes(chip, p, NULL, NULL);
}

extern "C" ft_cuda_blocks_way ft_cuda_blocks_choose(const ft_cuda_chip *chip,
                                                    const ft_cuda_blocks *p)
{
    if (p->by_codes)
        return FT_CUDA_BLOCKS_CODES;
    if (p->m <= ft_cuda_blocks_step_rows() && step_takes(chip, p))
        return FT_CUDA_BLOCKS_STEP;
    bool few = ft_cuda_blocks_few_takes(chip, p), tiles = ft_cuda_blocks_tiles_takes(chip, p);
    if (few && (suits_few(chip, p) || !tiles))
        return FT_CUDA_BLOCKS_FEW;
    return ft_cuda_blocks_wgmma_takes(chip, p) ? FT_CUDA_BLOCKS_WGMMA
           : tiles                             ? FT_CUDA_BLOCKS_TILES
                                               : FT_CUDA_BLOCKS_PLAIN;
}

static bool takes(ft_cuda_blocks_way way, const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    switch (way) {
    case FT_CUDA_BLOCKS_STEP:
        return step_takes(chip, p);
    case FT_CUDA_BLOCKS_FEW:
        return !p->by_codes && ft_cuda_blocks_few_takes(chip, p);
    case FT_CUDA_BLOCKS_TILES:
        return !p->by_codes && ft_cuda_blocks_tiles_takes(chip, p);
    case FT_CUDA_BLOCKS_WGMMA:
        return !p->by_codes && ft_cuda_blocks_wgmma_takes(chip, p);
    case FT_CUDA_BLOCKS_PLAIN:
        return !p->by_codes && ft_cuda_blocks_plain_takes(chip, p);
    case FT_CUDA_BLOCKS_CODES:
        return p->by_codes && ft_cuda_blocks_codes_takes(chip, p);
    case FT_CUDA_BLOCKS_WAYS:
        break;
    }
    return false;
}

static int run_step(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    return ft_cuda_blocks_step(chip, stream, p, NULL, NULL);
}

extern "C" int ft_cuda_blocks_with(ft_cuda_blocks_way way, const ft_cuda_chip *chip, void *stream,
                                   const ft_cuda_blocks *p)
{
    typedef int (*launcher)(const ft_cuda_chip *, void *, const ft_cuda_blocks *);
    static const launcher launch[] = { run_step,
                                       ft_cuda_blocks_few,
                                       ft_cuda_blocks_tiles,
                                       ft_cuda_blocks_wgmma,
                                       ft_cuda_blocks_plain,
                                       ft_cuda_blocks_codes };
    if (!takes(way, chip, p))
        return (int) cudaErrorNotSupported;
    return p->m == 0 ? (int) cudaSuccess : launch[way](chip, stream, p);
}

extern "C" int ft_cuda_blocks_run(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    return ft_cuda_blocks_with(ft_cuda_blocks_choose(chip, p), chip, stream, p);
}

extern "C" size_t ft_cuda_blocks_scratch(const ft_cuda_chip *chip, size_t m, size_t n, size_t k,
                                         ft_dtype x_dtype, bool by_codes)
{
    if (by_codes)
        return ft_cuda_blocks_codes_scratch(m, k);
    size_t few = ft_cuda_blocks_few_scratch(chip);
    size_t tiles = ft_cuda_blocks_tiles_scratch(chip, m, n, k, x_dtype);
    return few > tiles ? few : tiles;
}
