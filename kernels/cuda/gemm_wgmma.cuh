/*
 * gemm_wgmma.cuh - the int8 product of sm_90a: tokens x weights, both from shared memory.
 *
 * One block of three warpgroups runs on each multiprocessor until all tiles are done.  Two
 * threads of the first warpgroup keep a ring of stages full; a stage is 128 k of a tile's rows of x
 * and of the weights.  The other two warpgroups, the teams, multiply and finish:
 *
 *   in turns   each team has tiles of its own, and finishes one while the other multiplies;
 *   together   each team has half of the rows of every tile.
 *
 * A team multiplies ROWS tokens (64 or 128) by COLS weights.  Weights lie in memory so that the
 * columns of a lane are 8 neighbours (ft_cuda_tiles_offset): its codes are one store of 8 bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_WGMMA_CUH
#define FT_KERNELS_CUDA_GEMM_WGMMA_CUH

#include "kernels/cuda/gemm_wgmma_any.cuh"
#include "kernels/cuda/gemm_wgmma_floats.cuh"

#include <type_traits>

enum {
    WGMMA_THREADS = 3 * WGMMA_TEAM, /* loaders and two teams */
};

typedef enum wgmma_split { WGMMA_IN_TURNS, WGMMA_TOGETHER } wgmma_split;

/* A kernel's tile, and what it keeps in shared memory. */
template <int ROWS, int COLS, int STAGES, wgmma_split SPLIT> struct wgmma_shape {
    static constexpr int rows = ROWS, cols = COLS, stages = STAGES;
    static constexpr bool in_turns = SPLIT == WGMMA_IN_TURNS;
    static constexpr int tile_rows = SPLIT == WGMMA_TOGETHER ? 2 * ROWS : ROWS;
    static constexpr unsigned readers = in_turns ? 4 : 8; /* warps that read a stage */
};

template <class SHAPE, bool GENERAL, typename Y> struct wgmma_shared {
    static constexpr bool lined = !GENERAL && sizeof(Y) > 1;
    int8_t x[SHAPE::stages][SHAPE::tile_rows * WGMMA_STAGE];
    int8_t w[SHAPE::stages][SHAPE::cols * WGMMA_STAGE];
    wgmma_columns<SHAPE::cols> columns[2][2]; /* of each team; of this tile and the one before */
    wgmma_lines lines[lined ? 8 : 1];         /* of each warp */
    int32_t sums[GENERAL ? 2 : 1][GENERAL ? SHAPE::rows : 1][GENERAL ? SHAPE::cols + 4 : 4];
    uint64_t full[SHAPE::stages], empty[SHAPE::stages];
};

#ifdef FT_HAS_WGMMA

/* ---- The ring ------------------------------------------------------------------------------- */

/* A position in the ring: its slot, and the parity of the round. */
template <int STAGES> struct wgmma_position {
    int slot;
    unsigned parity;

    __device__ __forceinline__ explicit wgmma_position(int stage)
        : slot(stage % STAGES), parity(stage / STAGES & 1)
    {
    }
    __device__ __forceinline__ void advance()
    {
        if (++slot == STAGES) {
            slot = 0;
            parity ^= 1;
        }
    }
};

/* One thread, before all others begin. */
template <class SHAPE, bool GENERAL, typename Y>
__device__ __forceinline__ void wgmma_set_up(wgmma_shared<SHAPE, GENERAL, Y> &s,
                                             const wgmma_args &a)
{
    ft_prefetch_map(&a.x);
    ft_prefetch_map(&a.w);
    for (int i = 0; i < SHAPE::stages; i++) {
        ft_barrier_init(&s.full[i], 2);
        ft_barrier_init(&s.empty[i], SHAPE::readers);
    }
    ft_barriers_ready();
}

/* ---- The loaders ---------------------------------------------------------------------------- */

/*
 * One thread for x and one for the weights.  Weights do not depend on the kernel before, so they
 * are on their way while that one still ends.
 */
template <class SHAPE, bool GENERAL, typename Y>
__device__ __forceinline__ void wgmma_load(wgmma_shared<SHAPE, GENERAL, Y> &s, const wgmma_args &a,
                                           bool weights)
{
    wgmma_position<SHAPE::stages> at(0);
    unsigned bytes = (weights ? SHAPE::cols : SHAPE::tile_rows) * WGMMA_STAGE;
    if (!weights)
        ft_wait_for_predecessor();
    for (int tile = blockIdx.x; tile < a.tiles; tile += gridDim.x) {
        wgmma_place place = wgmma_place_of(a, tile, SHAPE::tile_rows, SHAPE::cols);
        for (int step = 0; step < a.steps; step++, at.advance()) {
            uint64_t *full = &s.full[at.slot];
            ft_barrier_wait(&s.empty[at.slot], at.parity ^ 1);
            ft_barrier_expect(full, bytes);
            if (weights)
                ft_load_weights(s.w[at.slot], &a.w, full, place.col, step);
            else
                ft_load_box(s.x[at.slot], &a.x, full, place.row, step * WGMMA_STAGE);
        }
    }
    if (!weights)
        ft_let_successor_begin();
}

/* ---- The teams ------------------------------------------------------------------------------ */

/* The warp has read a stage: once for all its lanes. */
__device__ __forceinline__ void wgmma_release(uint64_t *empty)
{
    if (threadIdx.x % 32 == 0)
        ft_barrier_arrive(empty);
}

/* One stage: 128 k of x . w^T; FIRST: of a tile. */
template <class SHAPE, bool FIRST>
__device__ __forceinline__ void wgmma_multiply(int32_t (&sums)[SHAPE::rows / 64][SHAPE::cols / 2],
                                               const int8_t *x, const int8_t *w)
{
    uint64_t rows = ft_wgmma_operand(x), cols = ft_wgmma_operand(w);
    ft_wgmma_begin();
#pragma unroll
    for (int k = 0; k < WGMMA_STAGE / 32; k++) {
#pragma unroll
        for (int i = 0; i < SHAPE::rows / 64; i++) {
            if (FIRST && k == 0)
                ft_wgmma_first<SHAPE::cols>(sums[i], rows + 512 * i, cols);
            else
                ft_wgmma<SHAPE::cols>(sums[i], rows + 512 * i + 2 * k, cols + 2 * k);
        }
    }
    ft_wgmma_commit();
}

/*
 * All stages of a tile, from stage `first` of the block on; the team's rows begin at `row` of the
 * tile.  A stage is given back when the one
 * after it has been handed to the tensor cores; the last one is still being multiplied on return.
 */
template <class SHAPE, bool GENERAL, typename Y>
__device__ __forceinline__ int wgmma_product(wgmma_shared<SHAPE, GENERAL, Y> &s, int first,
                                             int steps, int row,
                                             int32_t (&sums)[SHAPE::rows / 64][SHAPE::cols / 2])
{
    wgmma_position<SHAPE::stages> at(first);
    int before = at.slot;
    ft_barrier_wait(&s.full[at.slot], at.parity);
    wgmma_multiply<SHAPE, true>(sums, s.x[at.slot] + row * WGMMA_STAGE, s.w[at.slot]);
    for (int step = 1; step < steps; step++) {
        at.advance();
        ft_barrier_wait(&s.full[at.slot], at.parity);
        wgmma_multiply<SHAPE, false>(sums, s.x[at.slot] + row * WGMMA_STAGE, s.w[at.slot]);
        ft_wgmma_wait<1>();
        wgmma_release(&s.empty[before]);
        before = at.slot;
    }
    return before;
}

/*
 * Teams that take turns: a team may look at the ring only when the other has seen its last stage,
 * for it would take an older round of the ring for its own.
 */
enum { WGMMA_TURN = 1 }; /* named barriers 1 and 2 */

template <class SHAPE, ft_epilogue EPILOGUE, typename Y>
__device__ __forceinline__ void wgmma_work(wgmma_shared<SHAPE, EPILOGUE == FT_EPILOGUE_ANY, Y> &s,
                                           const wgmma_args &a, int team)
{
    constexpr bool general = EPILOGUE == FT_EPILOGUE_ANY;
    constexpr int rows = SHAPE::rows, cols = SHAPE::cols, stride = SHAPE::in_turns ? 2 : 1;
    int own_row = SHAPE::in_turns ? 0 : team * rows;
    int count = SHAPE::in_turns ? team : 0, tile = blockIdx.x + count * gridDim.x;
    wgmma_lines &lines = s.lines[s.lined ? threadIdx.x / 32 - 4 : 0];
    bool first = true;
    for (int parity = 0; tile < a.tiles; parity ^= 1, first = false) {
        wgmma_place place = wgmma_place_of(a, tile, SHAPE::tile_rows, cols);
        wgmma_columns_ahead<cols> columns(a, place);
        if (first)
            ft_wait_for_predecessor();
        wgmma_added<cols, std::conditional_t<general, int8_t, Y>> added(a, place,
                                                                        place.row + own_row);
        if (SHAPE::in_turns && count > 0)
            wgmma_sync(WGMMA_TURN + team, 2 * WGMMA_TEAM);
        int32_t sums[rows / 64][cols / 2];
        int last = wgmma_product<SHAPE>(s, count * a.steps, a.steps, own_row, sums);
        if (SHAPE::in_turns && tile + (int) gridDim.x < a.tiles)
            wgmma_arrive(WGMMA_TURN + (team ^ 1), 2 * WGMMA_TEAM);
        columns.keep(s.columns[team][parity], a);
        ft_wgmma_wait<0>();
        wgmma_release(&s.empty[last]);
#pragma unroll
        for (int i = 0; i < rows / 64; i++)
            ft_wgmma_settle(sums[i]);
        wgmma_sync_team(team);
        if constexpr (general)
            wgmma_finish_any<rows, cols, Y>(a, place, sums, s.columns[team][parity], s.sums[team],
                                            team);
        else
            wgmma_finish<rows, cols, EPILOGUE>(a, place, place.row + own_row, sums,
                                               s.columns[team][parity], added, lines);
        count += stride;
        tile += stride * gridDim.x;
    }
}
#endif

/*
 * grid = at most as many blocks as there are tiles; blockDim.x = WGMMA_THREADS; one block a
 * multiprocessor.  Registers: 168 a thread at first; the loader gives away all but 24, a team takes
 * 240, of which up to 192 are sums.
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
        (unsigned) (a.tiles < chip->multiprocessors ? a.tiles : chip->multiprocessors);
    return ft_launch(kernel, dim3(blocks), dim3(WGMMA_THREADS), bytes, stream, chip->overlaps, 1,
                     a);
}

#endif
