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

enum { NHWC_PINGPONG_BARRIER = 1 }; /* named barriers 1 and 2: wgmma_gemm.cu explains them */

template <class FORM>
__device__ __forceinline__ void nhwc_consumer(const char *stages_smem, nhwc_storage<FORM> &storage,
                                              const conv_gemm_params &p, int consumer)
{
    constexpr int stride = FORM::pingpong ? 2 : 1;
    nhwc_operands o = nhwc_operands_of<FORM>(p, consumer);
    int first = FORM::pingpong ? consumer : 0;
    ft_pdl_wait();
    for (int count = first, current_output = -1;; count += stride) {
        int tile = (int) (blockIdx.x + count * gridDim.x);
        if (tile >= p.tiles)
            break;
        conv_tile_coord coord = conv_tile_coord_of(p, tile);
        bool new_columns = coord.output != current_output;
        conv_epilogue_params params;
        if (new_columns)
            params = conv_epilogue_params_of<FORM>(p, coord.output +
                                                          (int) (threadIdx.x % CONV_WARPGROUP));
        ft_pipeline_state state = ft_pipeline_state_after(count * p.k_blocks, p.stages);
        nhwc_accumulators<FORM> sums;
        if (FORM::pingpong && count > 0)
            ft_named_barrier_sync(NHWC_PINGPONG_BARRIER + consumer, CONV_CONSUMERS);
        if constexpr (FORM::bits > 0)
            nhwc_mainloop_groupwise<FORM>(sums, stages_smem, storage, p, o, state, coord.output);
        else
            nhwc_mainloop<FORM>(sums, stages_smem, storage, p, o, state, p.k_blocks);
        if (FORM::pingpong && tile + (int) gridDim.x < p.tiles)
            ft_named_barrier_arrive(NHWC_PINGPONG_BARRIER + (consumer ^ 1), CONV_CONSUMERS);
        if (new_columns)
            nhwc_store_params<FORM>(storage.columns[consumer], params, consumer);
        current_output = coord.output;
        nhwc_epilogue<FORM>(storage, p, coord,
                            coord.window + (FORM::pingpong ? 0 : consumer * FORM::own), sums,
                            storage.columns[consumer], consumer);
    }
}

#endif

/* grid = at most one CTA per multiprocessor */
template <class FORM>
static __global__ void __launch_bounds__(FORM::threads, 1)
    conv_nhwc_kernel(const __grid_constant__ conv_gemm_params p)
{
#ifdef FT_HAS_WGMMA
    extern __shared__ __align__(1024) char stages_smem[];
    auto &storage = *(nhwc_storage<FORM> *) (stages_smem + p.stages * conv_stage_bytes(p));
    if (threadIdx.x == CONV_CONSUMERS)
        conv_init_barriers<FORM>(storage, p, FORM::pingpong ? 4 : 8);
    __syncthreads();
    if (threadIdx.x < CONV_CONSUMERS) {
        if constexpr (FORM::bits > 0)
            asm volatile("setmaxnreg.inc.sync.aligned.u32 184;");
        else
            asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        nhwc_consumer<FORM>(stages_smem, storage, p, (int) threadIdx.x / CONV_WARPGROUP);
    } else {
        if constexpr (FORM::bits == 0)
            asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        conv_producer<FORM>(stages_smem, storage, p);
    }
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

/* Launches with as many stages as fit. */
template <class FORM>
static int nhwc_launch(const ft_cuda_device_props *props, void *stream, conv_gemm_params *p)
{
    auto *kernel = conv_nhwc_kernel<FORM>;
    size_t stage = (size_t) conv_stage_bytes(*p), storage = sizeof(nhwc_storage<FORM>);
    size_t stages = (props->smem_bytes - storage) / stage;
    p->stages = (int) (stages < CONV_MAX_STAGES ? stages : CONV_MAX_STAGES);
    size_t bytes = (size_t) p->stages * stage + storage;
    int status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            (int) bytes);
    if (status != 0)
        return status;
    int blocks = p->tiles < props->sm_count ? p->tiles : props->sm_count;
    return ft_launch(kernel, (unsigned) blocks, FORM::threads, bytes, stream, props->has_pdl, 1,
                     *p);
}

/* Dispatch to the kernel of a tile. */
template <ft_dtype DTYPE, int BITS>
static int nhwc_launch_tile(const ft_cuda_device_props *props, void *stream, conv_gemm_params *p,
                            const conv_nhwc_tile *tile)
{
    if (tile->general)
        return nhwc_launch<nhwc_traits<DTYPE, BITS, 64, 1, false, true>>(props, stream, p);
    if (tile->windows == 256)
        return nhwc_launch<nhwc_traits<DTYPE, BITS, 64, 2, false, false>>(props, stream, p);
    if (tile->out_channels == 64 && tile->pingpong)
        return nhwc_launch<nhwc_traits<DTYPE, BITS, 64, 2, true, false>>(props, stream, p);
    if (tile->out_channels == 128 && !tile->pingpong)
        return nhwc_launch<nhwc_traits<DTYPE, BITS, 128, 1, false, false>>(props, stream, p);
    if constexpr (BITS > 0)
        return nhwc_launch<nhwc_traits<DTYPE, BITS, 64, 1, false, false>>(props, stream, p);
    else if (tile->windows == 64)
        return nhwc_launch<nhwc_traits<DTYPE, BITS, 128, 1, true, false>>(props, stream, p);
    else
        return nhwc_launch<nhwc_traits<DTYPE, BITS, 128, 2, true, false>>(props, stream, p);
}

#endif
