/*
 * prefill_wgmma.cu - prefill attention over the paged KV cache, sm_90a: heads of up to 128
 * elements, f16 and bf16.
 *
 * A producer warpgroup loads keys and values, 128 at a time, into a pipeline in shared memory. Two
 * consumer warpgroups process 64 queries each. The softmax of a tile overlaps with the PV GEMM of
 * the previous tile: the QK GEMM of the next tile is issued first, and both GEMMs have completed
 * when its softmax is done.
 *
 * int8 values pass through a pipeline of their own and are converted to f16, each as the rounded
 * float value * scale. An int8 cache therefore gives the same result as a cache of those f16
 * values, and the consumers are the same for both.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/attention/cache/prefill_wgmma.cuh"

#ifdef FT_HAS_WGMMA

/* ---- Consumer warpgroups -------------------------------------------------------------------- */

/* Consumer release: this warp has read the stage. */
static __device__ __forceinline__ void leave(uint64_t *empty, int fill)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        ft_barrier_arrive(&empty[fill % SLOTS]);
}

static __device__ __forceinline__ void arrive_at(uint64_t *full, int fill)
{
    ft_barrier_wait(&full[fill % SLOTS], (unsigned) (fill / SLOTS) & 1);
}

/* Issues s = q . k^T. */
template <int width, bool bf16>
static __device__ __forceinline__ void begin_scores(float (&s)[KEYS / 2], const uint8_t *query,
                                                    const uint8_t *keys)
{
    ft_wgmma_begin();
#pragma unroll
    for (int i = 0; i < width / 16; i++) {
        int at = i / 4 * PANEL + i % 4 * 32;
        ft_wgmma_halves<KEYS, bf16>(s, ft_wgmma_operand(query + at), ft_wgmma_operand(keys + at),
                                    i > 0);
    }
    ft_wgmma_commit();
}

/* Issues sums += weights . v. */
template <int width, bool bf16>
static __device__ __forceinline__ void
begin_mix(float (&sums)[width / 2], const uint32_t (&weights)[KEYS / 16][4], const uint8_t *values)
{
    ft_wgmma_begin();
#pragma unroll
    for (int i = 0; i < KEYS / 16; i++)
        ft_wgmma_halves_rows<width, bf16>(sums, weights[i],
                                          ft_wgmma_turned(values + i * 16 * 128, PANEL));
    ft_wgmma_commit();
}

template <bool bf16>
static __device__ __forceinline__ void pack_weights(uint32_t (&to)[KEYS / 16][4],
                                                    const float (&s)[KEYS / 2])
{
#pragma unroll
    for (int i = 0; i < KEYS / 4; i++)
        to[i / 4][i % 4] = pack<bf16>(s[2 * i], s[2 * i + 1]);
}

/* Masking and online softmax of a tile; `own` is the last visible key of the warp's first row. */
static __device__ __forceinline__ void weigh_tile(float (&s)[KEYS / 2], softmax *rows,
                                                  float shrink[2], const ft_attend_job &a, int own,
                                                  int base)
{
    float(*tile)[4] = (float(*)[4]) s;
    ft_wgmma_settle(s);
    ft_attend_hide<KEYS>(tile, a, own, base);
    weigh<KEYS, true>(tile, rows, shrink, a.score_scale);
}

template <int width, bool bf16, bool codes>
static __device__ __forceinline__ void multiply(rooms<width, codes> *r, const ft_attend_job &a,
                                                const work &w, int team)
{
    int row = 64 * team + (int) threadIdx.x % TEAM / 32 * 16;
    int own = ft_attend_last_key(a, w.task, row);
    int tiles = tiles_of(w);
    const uint8_t *query = r->query + 64 * team * 128;
    float s[KEYS / 2], sums[width / 2] = {}, shrink[2];
    uint32_t weights[KEYS / 16][4];
    softmax rows = { { -INFINITY, -INFINITY }, { 0.0f, 0.0f } };
    ft_barrier_wait(&r->asked, 0);
    arrive_at(r->full, 0);
    begin_scores<width, bf16>(s, query, r->slot[0]);
    ft_wgmma_wait<0>();
    leave(r->empty, 0);
    weigh_tile(s, &rows, shrink, a, own, w.first);
    pack_weights<bf16>(weights, s);
    for (int i = 1; i < tiles; i++) {
        int keys = 2 * i, values = 2 * i - 1;
        arrive_at(r->full, keys);
        begin_scores<width, bf16>(s, query, r->slot[keys % SLOTS]);
        arrive_at(r->full, values);
        begin_mix<width, bf16>(sums, weights, r->slot[values % SLOTS]);
        ft_wgmma_wait<1>();
        leave(r->empty, keys);
        weigh_tile(s, &rows, shrink, a, own, w.first + i * KEYS);
        ft_wgmma_wait<0>();
        ft_wgmma_settle(sums);
        leave(r->empty, values);
        shrink_sums<width>((float(*)[4]) sums, shrink);
        pack_weights<bf16>(weights, s);
    }
    arrive_at(r->full, 2 * tiles - 1);
    begin_mix<width, bf16>(sums, weights, r->slot[(2 * tiles - 1) % SLOTS]);
    ft_wgmma_wait<0>();
    ft_wgmma_settle(sums);
    size_t cols = (size_t) a.heads * (size_t) a.head_size;
    results to = { (uint16_t *) a.y + w.task.row * cols + (size_t) (w.head * a.head_size), cols,
                   w.task.rows, a.head_size };
    store<width, bf16>(to, row, &rows, (const float(*)[4]) sums);
}

/* ---- The kernel ----------------------------------------------------------------------------- */

template <int registers, bool more> static __device__ __forceinline__ void set_registers()
{
    if (more)
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
    else
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}

/* Later query tiles of a prompt see more keys, so they come first. */
static __device__ __forceinline__ work take(const ft_attend_job &a)
{
    work w;
    size_t index = blockIdx.x / (unsigned) a.heads;
    w.task = ft_attend_take(a, a.nblocks - 1 - index, QUERIES);
    w.head = (int) (blockIdx.x % (unsigned) a.heads);
    w.kv_head = w.head / a.group;
    w.first = ft_attend_first_key(a, w.task.position) / KEYS * KEYS;
    w.last = ft_attend_last_key(a, w.task, w.task.rows - 1);
    return w;
}

/* Consumer warpgroups that have queries. */
static __device__ __forceinline__ int teams_of(const work &w)
{
    return (w.task.rows + 63) / 64;
}

template <int width, bool codes>
static __device__ __forceinline__ void set_up(rooms<width, codes> *r, int teams)
{
    if (threadIdx.x == 0) {
        for (int i = 0; i < SLOTS; i++) {
            ft_barrier_init(&r->full[i], TEAM);
            ft_barrier_init(&r->empty[i], (unsigned) (4 * teams));
        }
        ft_barrier_init(&r->asked, TEAM);
        ft_barriers_ready();
    }
    __syncthreads();
}

#endif

template <int width, bool bf16, bool codes>
static __global__ void __launch_bounds__(THREADS, 1)
    attend_kernel(const __grid_constant__ ft_attend_job a)
{
#ifdef FT_HAS_WGMMA
    extern __shared__ __align__(1024) uint8_t shared[];
    rooms<width, codes> *r = (rooms<width, codes> *) shared;
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    work w = take(a);
    if (w.task.rows == 0)
        return;
    int team = (int) threadIdx.x / TEAM - 1;
    set_up(r, teams_of(w));
    if (team >= 0) {
        set_registers<TEAM_REGISTERS, true>();
        if (team < teams_of(w))
            multiply<width, bf16, codes>(r, a, w, team);
    } else {
        set_registers<LOADER_REGISTERS, false>();
        if constexpr (codes)
            load_codes<width, bf16>(r, a, w);
        else
            load_halves<width>(r, a, w);
    }
#endif
}

/* ---- Launch --------------------------------------------------------------------------------- */

template <int width, bool bf16, bool codes>
static int launch(const ft_cuda_chip *chip, void *stream, const ft_attend_job *a)
{
    const size_t bytes = sizeof(rooms<width, codes>);
    dim3 grid((unsigned) (a->nblocks * (size_t) a->heads));
    cudaError_t status =
        cudaFuncSetAttribute(attend_kernel<width, bf16, codes>,
                             cudaFuncAttributeMaxDynamicSharedMemorySize, (int) bytes);
    if (status != cudaSuccess)
        return (int) status;
    return ft_launch(attend_kernel<width, bf16, codes>, grid, dim3(THREADS), bytes, stream,
                     chip->overlaps, 1, *a);
}

template <bool bf16, bool codes>
static int launch_width(const ft_cuda_chip *chip, void *stream, const ft_attend_job *a)
{
    return a->head_size <= 64 ? launch<64, bf16, codes>(chip, stream, a)
                              : launch<128, bf16, codes>(chip, stream, a);
}

int ft_cuda_attend_wgmma(const ft_cuda_chip *chip, void *stream, const ft_attend_job *a)
{
    bool bf16 = a->q_dtype == FT_BF16, codes = a->cache_dtype == FT_I8;
    if (!chip->has_wgmma || a->head_size > 128 || (a->q_dtype != FT_F16 && !bf16) ||
        a->y_dtype != a->q_dtype || (!codes && a->cache_dtype != a->q_dtype) || a->origin != NULL)
        return (int) cudaErrorNotSupported;
    if (bf16)
        return codes ? launch_width<true, true>(chip, stream, a)
                     : launch_width<true, false>(chip, stream, a);
    return codes ? launch_width<false, true>(chip, stream, a)
                 : launch_width<false, false>(chip, stream, a);
}
