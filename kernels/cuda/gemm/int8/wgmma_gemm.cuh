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
 * Weights are prepacked so that a lane holds 8 neighbouring columns (ft_cuda_tiles_offset) and
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
    WGMMA_THREADS = 3 * WGMMA_TEAM, /* producer and two consumer warpgroups */
};

#ifdef FT_HAS_WGMMA

/*
 * Ping-pong order: a warpgroup waits on the pipeline only after the other has consumed its last
 * stage, otherwise it would mistake an older phase for its own.
 */
enum { WGMMA_TURN = 1 }; /* named barriers 1 and 2 */

/* All blocks of 64 rows at once, which share scales and biases. */
template <class SHAPE, class RESULT, class ADDED, class ROWS>
__device__ __forceinline__ void wgmma_finish_at_once(wgmma_sums<SHAPE> &sums, RESULT &result,
                                                     const ADDED &added, const ROWS &rows)
{
#pragma unroll
    for (int block = 0; block < SHAPE::cols / 32; block++)
        result.finish(sums, block, added, rows);
}

/*
 * One block of 64 rows after the other through the same code, in the registers of the first. Moving
 * the accumulators takes 96 instructions, but a loop of more than 32 KiB exceeds the first
 * instruction cache and runs at 2.4 clocks per instruction instead of one: with GELU, 4096 x 3072 x
 * 768 took 21.3 us instead of 19.6.
 */
template <class SHAPE, class RESULT, class ADDED, class ROWS>
__device__ __forceinline__ void wgmma_finish_in_turns(wgmma_sums<SHAPE> &sums, RESULT &result,
                                                      const ADDED &added, ROWS &rows)
{
    typedef int32_t one[1][SHAPE::cols / 2];
#pragma unroll 1
    for (int half = 0;; half++) {
#pragma unroll
        for (int block = 0; block < SHAPE::cols / 32; block++)
            result.finish((const one &) sums, block, added, rows);
        if (half + 1 == SHAPE::halves)
            break;
#pragma unroll
        for (int i = 0; i < SHAPE::cols / 2; i++)
            sums[0][i] = sums[SHAPE::halves - 1][i];
        result.descend();
        rows.descend();
    }
}

template <class SHAPE, ft_epilogue EPILOGUE, typename Y, class SHARED>
__device__ __forceinline__ void wgmma_work(SHARED &s, const wgmma_args &a, int team)
{
    constexpr bool general = EPILOGUE == FT_EPILOGUE_ANY,
                   whole = EPILOGUE == FT_EPILOGUE_NONE || EPILOGUE == FT_EPILOGUE_ROWS;
    constexpr int cols = SHAPE::cols, stride = SHAPE::in_turns ? 2 : 1;
    typedef std::conditional_t<general || sizeof(Y) == 1 || SHAPE::halves == 2, wgmma_nothing,
                               wgmma_residual<cols, Y>>
        residual;
    wgmma_result<cols, EPILOGUE, Y> result(s.lines[s.lined ? threadIdx.x / 32 - 4 : 0]);
    int own_row = SHAPE::in_turns ? 0 : team * SHAPE::halves * 64;
    int first = SHAPE::in_turns ? team : 0;
    for (int count = first;; count += stride) {
        int tile = blockIdx.x + count * gridDim.x, parity = count / stride % 2;
        if (tile >= a.n_tiles)
            break;
        wgmma_place place = wgmma_place_of(a, tile, SHAPE::tile_rows, cols);
        wgmma_columns_ahead<cols> columns(a, place);
        if (count == first)
            ft_wait_for_predecessor();
        residual added(a, place, place.row + own_row);
        wgmma_row_scales<EPILOGUE == FT_EPILOGUE_ROWS, SHAPE::halves> rows;
        rows.fetch(a, place.row + own_row);
        if (SHAPE::in_turns && count > 0)
            wgmma_sync(WGMMA_TURN + team, 2 * WGMMA_TEAM);
        wgmma_reader<SHAPE> reader(count * a.steps, own_row);
        wgmma_sums<SHAPE> sums;
        for (int step = 0; step < a.steps; step++)
            reader.multiply(s, sums);
        if (SHAPE::in_turns && tile + (int) gridDim.x < a.n_tiles)
            wgmma_arrive(WGMMA_TURN + (team ^ 1), 2 * WGMMA_TEAM);
        columns.keep(s.columns[team][parity], a);
        reader.settle(s, sums);
        wgmma_sync_team(team);
        if constexpr (general) {
            wgmma_finish_any<cols, Y>(a, place, sums[0], s.columns[team][parity], s.sums[team],
                                      team);
        } else {
            result.open(a, place, place.row + own_row, s.columns[team][parity]);
            if constexpr (whole && sizeof(Y) < 4)
                wgmma_finish_at_once<SHAPE>(sums, result, added, rows);
            else
                wgmma_finish_in_turns<SHAPE>(sums, result, added, rows);
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
    auto &s = *(wgmma_shared<SHAPE, EPILOGUE == FT_EPILOGUE_ANY, Y> *) shared_memory;
    int group = threadIdx.x / WGMMA_TEAM;
    if (threadIdx.x == 0)
        wgmma_set_up(s, a);
    __syncthreads();
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == 0 || threadIdx.x == 32)
            wgmma_load(s, a, threadIdx.x == 32);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        wgmma_work<SHAPE, EPILOGUE, Y>(s, a, group - 1);
    }
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

template <class SHAPE, ft_epilogue EPILOGUE, typename Y>
static int wgmma_launch(const ft_cuda_chip *chip, void *stream, const ft_cuda_product *p)
{
    auto *kernel = wgmma_kernel<SHAPE, EPILOGUE, Y>;
    size_t bytes = sizeof(wgmma_shared<SHAPE, EPILOGUE == FT_EPILOGUE_ANY, Y>);
    wgmma_args a;
    int status = wgmma_args_init(&a, p, EPILOGUE == FT_EPILOGUE_ANY, SHAPE::tile_rows, SHAPE::cols);
    if (status == 0)
        status = wgmma_args_map_tiles(&a, p, SHAPE::cols);
    if (status == 0)
        status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            (int) bytes);
    if (status != 0)
        return status;
    unsigned blocks =
        (unsigned) (a.n_tiles < chip->multiprocessors ? a.n_tiles : chip->multiprocessors);
    return ft_launch(kernel, dim3(blocks), dim3(WGMMA_THREADS), bytes, stream, chip->overlaps, 1,
                     a);
}

#endif
