/*
 * conv_nhwc.cuh - implicit-GEMM convolution on the tensor cores of sm_90a with NHWC output: y =
 * windows . w^T.
 *
 * It has the loads of conv_wgmma.cuh, but windows are the rows of the GEMM and output channels its
 * columns, so a row of accumulators is contiguous in an output pixel. A CTA has two consumer
 * warpgroups, each with 64 or 128 windows by 64 or 128 output channels:
 *
 *   ping-pong    each warpgroup has tiles of its own; its epilogue overlaps with the other's MMAs;
 *   cooperative  each warpgroup has half of the windows of every tile.
 *
 * The order of weights in shared memory gives a lane 8 consecutive channels of every 32, so that 4
 * lanes fill whole sectors. General kernels support any activation and any number of output
 * channels; their epilogue goes through shared memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_CONV_CONV_NHWC_CUH
#define FT_KERNELS_CUDA_CONV_CONV_NHWC_CUH

#include "kernels/cuda/conv/conv_nhwc_epilogue.cuh"

#ifdef FT_HAS_WGMMA

/* ---- Consumer warpgroups -------------------------------------------------------------------- */

enum { ROWS_TURN = 1 }; /* named barriers 1 and 2: wgmma_gemm.cu explains them */

__device__ __forceinline__ conv_at rows_at_stage(int stage, int stages)
{
    int round = stage / stages;
    conv_at at = { stage - round * stages, (unsigned) round & 1 };
    return at;
}

template <class FORM>
__device__ __forceinline__ void rows_work(const char *ring, rows_rest<FORM> &rest,
                                          const conv_product &p, int team)
{
    constexpr int stride = FORM::turns ? 2 : 1;
    rows_operands o = rows_operands_of<FORM>(p, team);
    int first = FORM::turns ? team : 0;
    ft_wait_for_predecessor();
    for (int count = first, kept = -1;; count += stride) {
        int tile = (int) (blockIdx.x + count * gridDim.x);
        if (tile >= p.tiles)
            break;
        conv_place place = conv_place_of(p, tile);
        bool others = place.output != kept;
        conv_numbers numbers;
        if (others)
            numbers = conv_numbers_of<FORM>(p, place.output + (int) (threadIdx.x % CONV_TEAM));
        conv_at at = rows_at_stage(count * p.steps, p.stages);
        rows_sums<FORM> sums;
        if (FORM::turns && count > 0)
            wgmma_sync(ROWS_TURN + team, CONV_WORKERS);
        if constexpr (FORM::bits > 0)
            rows_add_groups<FORM>(sums, ring, rest, p, o, at, place.output);
        else
            rows_add_steps<FORM>(sums, ring, rest, p, o, at, p.steps);
        if (FORM::turns && tile + (int) gridDim.x < p.tiles)
            wgmma_arrive(ROWS_TURN + (team ^ 1), CONV_WORKERS);
        if (others)
            rows_keep<FORM>(rest.columns[team], numbers, team);
        kept = place.output;
        rows_put<FORM>(rest, p, place, place.window + (FORM::turns ? 0 : team * FORM::own), sums,
                       rest.columns[team], team);
    }
}

#endif

/* grid = at most one CTA per multiprocessor */
template <class FORM>
static __global__ void __launch_bounds__(FORM::threads, 1)
    rows_kernel(const __grid_constant__ conv_product p)
{
#ifdef FT_HAS_WGMMA
    extern __shared__ __align__(1024) char ring[];
    auto &rest = *(rows_rest<FORM> *) (ring + p.stages * conv_stage_bytes(p));
    if (threadIdx.x == CONV_WORKERS)
        conv_set_up<FORM>(rest, p, FORM::turns ? 4 : 8);
    __syncthreads();
    if (threadIdx.x < CONV_WORKERS) {
        if constexpr (FORM::bits > 0)
            asm volatile("setmaxnreg.inc.sync.aligned.u32 184;");
        else
            asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        rows_work<FORM>(ring, rest, p, (int) threadIdx.x / CONV_TEAM);
    } else {
        if constexpr (FORM::bits == 0)
            asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        conv_serve<FORM>(ring, rest, p);
    }
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

/* Launches with as many stages as fit. */
template <class FORM>
static int rows_launch(const ft_cuda_chip *chip, void *stream, conv_product *p)
{
    auto *kernel = rows_kernel<FORM>;
    size_t stage = (size_t) conv_stage_bytes(*p), rest = sizeof(rows_rest<FORM>);
    size_t stages = (chip->shared - rest) / stage;
    p->stages = (int) (stages < CONV_STAGES ? stages : CONV_STAGES);
    size_t bytes = (size_t) p->stages * stage + rest;
    int status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            (int) bytes);
    if (status != 0)
        return status;
    int blocks = p->tiles < chip->multiprocessors ? p->tiles : chip->multiprocessors;
    return ft_launch(kernel, (unsigned) blocks, FORM::threads, bytes, stream, chip->overlaps, 1,
                     *p);
}

/* Dispatch to the kernel of a tile. */
template <ft_dtype DTYPE, int BITS>
static int rows_launch_tile(const ft_cuda_chip *chip, void *stream, conv_product *p,
                            const conv_rows_tile *tile)
{
    if (tile->general)
        return rows_launch<rows_form<DTYPE, BITS, 64, 1, false, true>>(chip, stream, p);
    if (tile->windows == 256)
        return rows_launch<rows_form<DTYPE, BITS, 64, 2, false, false>>(chip, stream, p);
    if (tile->outputs == 64 && tile->turns)
        return rows_launch<rows_form<DTYPE, BITS, 64, 2, true, false>>(chip, stream, p);
    if (tile->outputs == 128 && !tile->turns)
        return rows_launch<rows_form<DTYPE, BITS, 128, 1, false, false>>(chip, stream, p);
    if constexpr (BITS > 0)
        return rows_launch<rows_form<DTYPE, BITS, 64, 1, false, false>>(chip, stream, p);
    else if (tile->windows == 64)
        return rows_launch<rows_form<DTYPE, BITS, 128, 1, true, false>>(chip, stream, p);
    else
        return rows_launch<rows_form<DTYPE, BITS, 128, 2, true, false>>(chip, stream, p);
}

#endif
