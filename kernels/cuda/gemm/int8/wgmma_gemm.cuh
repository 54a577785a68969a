/*
 * wgmma_gemm.cuh - warp-specialized wgmma INT8 GEMM on sm_90a, both operands in shared memory.
 *
 * One persistent thread block of three warpgroups per SM. Two threads of the producer warpgroup
 * fill the pipeline (wgmma_pipeline.cuh). The two consumer warpgroups run mainloop and epilogue, on
 * 64 or 128 tokens by COLS columns each:
 *
 *   ping-pong     each warpgroup has tiles of its own; its epilogue overlaps the other's mainloop;
 *   cooperative   each warpgroup computes half of the rows of every tile.
 *
 * The epilogue slows down the other warpgroup, because the tensor cores keep accumulators in the
 * same register file. On an H200 a k tile of 64 x 192 takes 386 clocks, and 770 next to one warp
 * per scheduler that multiplies floats, at 0.7 clocks per multiplication; two such warps starve it.
 * Hence only one warpgroup runs its epilogue at a time. (Interleaving the epilogue with the next
 * mainloop in both warpgroups was slower.) Comparisons and packing do not slow the tensor cores,
 * but wait for them.
 *
 * Weights are prepacked so that a lane holds 8 neighbouring columns (ft_cuda_prepacked_offset) and
 * stores int8 results as 8 bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_INT8_WGMMA_GEMM_CUH
#define FT_KERNELS_CUDA_GEMM_INT8_WGMMA_GEMM_CUH

#include "kernels/cuda/gemm/int8/wgmma_any_epilogue.cuh"
#include "kernels/cuda/gemm/int8/wgmma_pipeline.cuh"

#include <type_traits>

enum {
    WGMMA_THREADS = 3 * WARPGROUP_THREADS, /* producer and two consumer warpgroups */
};

#ifdef FT_HAS_WGMMA

/*
 * Ping-pong order: a warpgroup waits on the pipeline only after the other has consumed its last
 * stage, otherwise it would mistake an older phase for its own.
 */
enum { WGMMA_ORDER_BARRIER = 1 }; /* named barriers 1 and 2 */

/* All blocks of 64 rows at once, which share scales and biases. */
template <class SHAPE, class RESULT, class ADDED, class ROWS>
__device__ __forceinline__ void wgmma_epilogue_unrolled(wgmma_acc<SHAPE> &sums, RESULT &result,
                                                        const ADDED &residual_frag,
                                                        const ROWS &rows)
{
#pragma unroll
    for (int block = 0; block < SHAPE::cols / 32; block++)
        result.finish(sums, block, residual_frag, rows);
}

/*
 * One block of 64 rows after the other through the same code, in the registers of the first. Moving
 * the accumulators takes 96 instructions, but a loop of more than 32 KiB exceeds the first
 * instruction cache and runs at 2.4 clocks per instruction instead of one: with GELU, 4096 x 3072 x
 * 768 took 21.3 us instead of 19.6.
 */
template <class SHAPE, class RESULT, class ADDED, class ROWS>
__device__ __forceinline__ void wgmma_epilogue_loop(wgmma_acc<SHAPE> &sums, RESULT &result,
                                                    const ADDED &residual_frag, ROWS &rows)
{
    typedef int32_t one[1][SHAPE::cols / 2];
#pragma unroll 1
    for (int m64_block = 0;; m64_block++) {
#pragma unroll
        for (int block = 0; block < SHAPE::cols / 32; block++)
            result.finish((const one &) sums, block, residual_frag, rows);
        if (m64_block + 1 == SHAPE::m64_blocks)
            break;
#pragma unroll
        for (int i = 0; i < SHAPE::cols / 2; i++)
            sums[0][i] = sums[SHAPE::m64_blocks - 1][i];
        result.next_m64_block();
        rows.next_m64_block();
    }
}

template <class SHAPE, ft_epilogue EPILOGUE, typename Y, class SHARED>
__device__ __forceinline__ void wgmma_consume(SHARED &s, const wgmma_args &a, int warpgroup)
{
    constexpr bool general = EPILOGUE == FT_EPILOGUE_ANY,
                   is_linear = EPILOGUE == FT_EPILOGUE_NONE || EPILOGUE == FT_EPILOGUE_ROW_SCALES;
    constexpr int cols = SHAPE::cols, stride = SHAPE::is_pingpong ? 2 : 1;
    typedef std::conditional_t<general || sizeof(Y) == 1 || SHAPE::m64_blocks == 2,
                               wgmma_no_residual, wgmma_residual<cols, Y>>
        residual;
    wgmma_output<cols, EPILOGUE, Y> result(s.lines[s.uses_line_buffer ? threadIdx.x / 32 - 4 : 0]);
    int own_row = SHAPE::is_pingpong ? 0 : warpgroup * SHAPE::m64_blocks * 64;
    int first = SHAPE::is_pingpong ? warpgroup : 0;
    for (int count = first;; count += stride) {
        int tile = blockIdx.x + count * gridDim.x, phase = count / stride % 2;
        if (tile >= a.n_tiles)
            break;
        wgmma_tile_coord coord = wgmma_tile_coord_of(a, tile, SHAPE::tile_rows, cols);
        wgmma_col_params_prefetch<cols> columns(a, coord);
        if (count == first)
            ft_pdl_wait();
        residual residual_frag(a, coord, coord.row + own_row);
        wgmma_row_scales<ft_epilogue_has_row_scales(EPILOGUE), SHAPE::m64_blocks> rows;
        rows.fetch(a, coord.row + own_row);
        if (SHAPE::is_pingpong && count > 0)
            ft_named_barrier_sync(WGMMA_ORDER_BARRIER + warpgroup, 2 * WARPGROUP_THREADS);
        wgmma_consumer<SHAPE> reader(count * a.k_tiles, own_row);
        wgmma_acc<SHAPE> sums;
        for (int k_tile = 0; k_tile < a.k_tiles; k_tile++)
            reader.multiply(s, sums);
        if (SHAPE::is_pingpong && tile + (int) gridDim.x < a.n_tiles)
            ft_named_barrier_arrive(WGMMA_ORDER_BARRIER + (warpgroup ^ 1), 2 * WARPGROUP_THREADS);
        columns.store_smem(s.columns[warpgroup][phase], a);
        reader.wait_acc(s, sums);
        wgmma_warpgroup_sync(warpgroup);
        if constexpr (general) {
            wgmma_epilogue_general<cols, Y>(a, coord, sums[0], s.columns[warpgroup][phase],
                                            s.sums[warpgroup], warpgroup);
        } else {
            result.open(a, coord, coord.row + own_row, s.columns[warpgroup][phase]);
            if constexpr (is_linear && sizeof(Y) < 4)
                wgmma_epilogue_unrolled<SHAPE>(sums, result, residual_frag, rows);
            else
                wgmma_epilogue_loop<SHAPE>(sums, result, residual_frag, rows);
        }
    }
}
#endif

/*
 * grid = at most one thread block per tile; blockDim.x = WGMMA_THREADS; one block per SM.
 * Registers: 168 per thread at launch; the producer keeps 24, a consumer takes 240, up to 192 of
 * which are accumulators.
 */
template <class SHAPE, ft_epilogue EPILOGUE, typename Y>
__global__ void __launch_bounds__(WGMMA_THREADS, 1)
    wgmma_kernel(const __grid_constant__ wgmma_args a)
{
#ifdef FT_HAS_WGMMA
    extern __shared__ __align__(1024) int8_t shared_memory[];
    auto &s = *(wgmma_smem<SHAPE, EPILOGUE == FT_EPILOGUE_ANY, Y> *) shared_memory;
    int group = threadIdx.x / WARPGROUP_THREADS;
    if (threadIdx.x == 0)
        wgmma_pipeline_init(s, a);
    __syncthreads();
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == 0 || threadIdx.x == 32)
            wgmma_produce(s, a, threadIdx.x == 32);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        wgmma_consume<SHAPE, EPILOGUE, Y>(s, a, group - 1);
    }
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

template <class SHAPE, ft_epilogue EPILOGUE, typename Y>
static int wgmma_launch(const ft_cuda_device_props *props, void *stream, const ft_cuda_gemm_args *p)
{
    auto *kernel = wgmma_kernel<SHAPE, EPILOGUE, Y>;
    size_t bytes = sizeof(wgmma_smem<SHAPE, EPILOGUE == FT_EPILOGUE_ANY, Y>);
    wgmma_args a;
    int status = wgmma_args_init(&a, p, EPILOGUE == FT_EPILOGUE_ANY, SHAPE::tile_rows, SHAPE::cols);
    if (status == 0)
        status = wgmma_args_map_weights(&a, p, SHAPE::cols);
    if (status == 0)
        status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            (int) bytes);
    if (status != 0)
        return status;
    unsigned blocks = (unsigned) (a.n_tiles < props->sm_count ? a.n_tiles : props->sm_count);
    return ft_launch(kernel, dim3(blocks), dim3(WGMMA_THREADS), bytes, stream, props->has_pdl, 1,
                     a);
}

#endif
