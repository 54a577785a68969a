/*
 * attend_kv_int8.cu - decode attention over an int8 KV cache with heads of 128 elements, from sm_90
 * on; limited by memory bandwidth.
 *
 * 64 x 512 tokens of 32 heads are 277 MB, which an H200 reads at 4.3 TB/s. decode.cu takes 89 us
 * for them: 87 for the copies alone, 59 for the arithmetic alone. This kernel takes 66 us. TMA
 * copies tiles of 4 KiB, each warp has a pipeline that continues across work units
 * (attend_kv_int8_pipeline.cuh), and the MMAs consume int8 values directly
 * (attend_kv_int8_mainloop.cuh). The loads have an L2 evict-first policy; without it the kernel
 * takes 10 us longer.
 *
 * Sums are ordered by position. The keys of a row are cut into units, and tiles of 32 keys of a
 * unit are distributed round-robin over the warps. A warp adds its own tiles in order, a unit is
 * the sum of its warps in order, and a row is the sum of its units. The assignment of keys depends
 * on the row's position alone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/attention/cache/attend_kv_int8_mainloop.cuh"

/* ---- Shared memory -------------------------------------------------------------------------- */

/*
 * Shared memory before the pipelines. Queries are double-buffered because one unit begins as the
 * previous one ends.
 */
template <int sets> struct room {
    uint64_t full[WARPS][MOST_STAGES];
    queries q[2][sets];
};

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900

/*
 * Followed by [WARPS, stages, 2, KEY_TILE] scales, then the partial sums of the warps: [2, WARPS,
 * heads, PARTIAL].
 */
template <int sets> struct places {
    room<sets> *r;
    char *tiles;
    float *scales, *slots;

    __device__ __forceinline__ places(char *shared, int stages)
    {
        tiles = shared;
        r = (room<sets> *) (shared + WARPS * stages * STAGE);
        scales = (float *) (r + 1);
        slots = scales + WARPS * stages * 2 * STEP;
    }
};

/* ---- Partial sums of a warp ----------------------------------------------------------------- */

template <int sets>
static __device__ __forceinline__ void compute(partial_sums<sets> *sums, ring *tiles,
                                               const queries q[sets], const ft_attend_job &a,
                                               const codes_maps &maps, const share &s)
{
    int lane = (int) threadIdx.x % 32;
    span steps = span_of(s);
    uint32_t words[sets][8];
    float scale[sets];
#pragma unroll
    for (int set = 0; set < sets; set++) {
        sums->most[set] = -INFINITY;
        sums->sum[set] = 0.0f;
        scale[set] = q[set].scale[lane % 4];
#pragma unroll
        for (int i = 0; i < 16; i++)
            sums->y[set][i] = 0.0f;
#pragma unroll
        for (int i = 0; i < 8; i++)
            words[set][i] = q[set].word[i][lane];
    }
#pragma unroll 1
    for (int base = steps.base; base < steps.end; base += STRIDE) {
        tiles->wait();
        add_step<sets>(sums, tiles->stages + tiles->slot * STAGE,
                       tiles->scales + tiles->slot * 2 * STEP, words, scale, base, s.first, s.last);
        tiles->release(a, maps);
    }
}

template <int sets>
static __device__ __forceinline__ void write_sums(float *slots, const partial_sums<sets> &sums,
                                                  int heads)
{
    int lane = (int) threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int set = 0; set < sets; set++) {
        float sum = ft_attend_total(sums.sum[set]), *slot = slots + (4 * set + t) * SLOT;
        const float *y = sums.y[set];
        if (4 * set + t >= heads)
            continue;
#pragma unroll
        for (int i = 0; i < 16; i += 4)
            *(float4 *) (slot + 16 * g + i) = make_float4(y[i], y[i + 1], y[i + 2], y[i + 3]);
        if (g == 0) {
            slot[WIDTH] = sums.most[set];
            slot[WIDTH + 1] = sum;
        }
    }
}

/* ---- Reduction ------------------------------------------------------------------------------ */

/* Four elements of a head: one lane's part of the reduction over warps or units. */
typedef struct sums_of_head {
    float4 y;
    float most, sum;
} sums_of_head;

/* Reads from shared memory, or from global memory that other CTAs have written. */
template <bool inside, typename T> static __device__ __forceinline__ T read_slot(const float *from)
{
    return inside ? *(const T *) from : __ldcg((const T *) from);
}

/* Combines `count` partials (at most `max_count`), `stride` floats apart. */
template <bool inside, int max_count>
static __device__ __forceinline__ sums_of_head add_up(const float *slots, int stride, int count)
{
    sums_of_head h = { make_float4(0.0f, 0.0f, 0.0f, 0.0f), -INFINITY, 0.0f };
    float4 y[max_count];
    float2 tail[max_count];
#pragma unroll
    for (int i = 0; i < max_count; i++) {
        tail[i] = make_float2(-INFINITY, 0.0f);
        y[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (i < count) {
            tail[i] = read_slot<inside, float2>(slots + i * stride + WIDTH);
            y[i] = read_slot<inside, float4>(slots + i * stride + (int) threadIdx.x % 32 * 4);
        }
        h.most = fmaxf(h.most, tail[i].x);
    }
#pragma unroll
    for (int i = 0; i < max_count; i++) {
        float weight = ft_power_of_two(tail[i].x - h.most);
        h.sum = fmaf(tail[i].y, weight, h.sum);
        h.y.x = fmaf(y[i].x, weight, h.y.x);
        h.y.y = fmaf(y[i].y, weight, h.y.y);
        h.y.z = fmaf(y[i].z, weight, h.y.z);
        h.y.w = fmaf(y[i].w, weight, h.y.w);
    }
    return h;
}

static __device__ __forceinline__ void write(const ft_attend_job &a, const unit &u, int head,
                                             const sums_of_head &h)
{
    float v[4] = { h.y.x / h.sum, h.y.y / h.sum, h.y.z / h.sum, h.y.w / h.sum };
    size_t row = (size_t) u.sequence * (size_t) a.heads + (size_t) (u.first_head + head);
    ft_store<4>(a.y, a.y_dtype, row * WIDTH + threadIdx.x % 32 * 4, v);
}

/*
 * Whether this warp is the last of `units` to finish this head. Each head of a group counts in four
 * bits, which the last warp resets to zero.
 */
static __device__ __forceinline__ bool is_last(const ft_attend_job &a, const unit &u, int head,
                                               int units)
{
    uint32_t *arrived = a.arrived + (size_t) u.sequence * (size_t) a.groups + u.group;
    bool last = false;
    __threadfence();
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
        last = (int) (atomicAdd(arrived, 1u << 4 * head) >> 4 * head & 15) + 1 == units;
        if (last)
            atomicSub(arrived, (uint32_t) units << 4 * head);
    }
    last = __shfl_sync(~0u, last, 0);
    __threadfence();
    return last;
}

/*
 * One warp reduces one head of a unit. The last unit to finish also reduces the head over all
 * units.
 */
static __device__ __forceinline__ void finish(const ft_attend_job &a, const unit &u, const share &s,
                                              const float *slots, int head)
{
    sums_of_head h = add_up<true, WARPS>(slots + head * SLOT, u.heads * SLOT, WARPS);
    if (s.count > 1) {
        size_t row = (size_t) u.sequence * (size_t) a.heads + (size_t) (u.first_head + head);
        float *all = a.partial + row * (size_t) (a.shares * SLOT), *mine = all + u.split * SLOT;
        *(float4 *) (mine + threadIdx.x % 32 * 4) = h.y;
        if (threadIdx.x % 32 == 0)
            *(float2 *) (mine + WIDTH) = make_float2(h.most, h.sum);
        if (!is_last(a, u, head, s.count))
            return;
        h = add_up<false, MOST_UNITS>(all, SLOT, s.count);
    }
    write(a, u, head, h);
}

/* ---- Work units of a CTA -------------------------------------------------------------------- */

/* Prefetched queries of a unit. */
template <int sets> struct next_queries {
    query_bits bits[sets];

    __device__ __forceinline__ void fetch(const ft_attend_job &a, const unit &u)
    {
#pragma unroll
        for (int set = 0; set < sets; set++)
            fetch_query(&bits[set], a, u, set);
    }
    __device__ __forceinline__ void make(queries q[sets], const ft_attend_job &a)
    {
#pragma unroll
        for (int set = 0; set < sets; set++)
            make_query(&q[set], bits[set], a);
    }
};

/*
 * Processes up to 32 units. The warps take turns in quantizing the queries of the next unit and in
 * reducing the finished one.
 */
template <int sets>
static __device__ __forceinline__ void compute_roll(const places<sets> &p, ring *tiles,
                                                    const ft_attend_job &a, const codes_maps &maps,
                                                    const roll &units, int *count)
{
    int warp = (int) threadIdx.x / 32, lane = next_bit(units.live, 0);
    next_queries<sets> queries;
    if (warp == 0 && lane < 32) {
        queries.fetch(a, unit_at(units, lane));
        queries.make(p.r->q[*count % 2], a);
    }
    __syncthreads();
#pragma unroll 1
    for (; lane < 32; ++*count) {
        unit u = unit_at(units, lane);
        share s = share_of(a, from_lane(units.position, lane), u.split);
        float *slots = p.slots + *count % 2 * (WARPS * min(a.group, HEADS) * SLOT);
        int turn = (warp + *count) % WARPS;
        partial_sums<sets> sums;
        lane = next_bit(units.live, lane + 1);
        bool makes = turn == WARPS - 1 && lane < 32;
        if (makes)
            queries.fetch(a, unit_at(units, lane));
        compute<sets>(&sums, tiles, p.r->q[*count % 2], a, maps, s);
        write_sums<sets>(slots + warp * u.heads * SLOT, sums, u.heads);
        if (makes)
            queries.make(p.r->q[(*count + 1) % 2], a);
        __syncthreads();
        if (turn < u.heads)
            finish(a, u, s, slots, turn);
    }
}
#endif

/* Grid: the number of units, or the number of CTAs that run concurrently if this is less. */
template <int sets>
static __global__ void __launch_bounds__(THREADS, 1)
    codes_kernel(const __grid_constant__ ft_attend_job a, const __grid_constant__ codes_maps maps,
                 int stages)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
    extern __shared__ __align__(1024) char shared[];
    int warp = (int) threadIdx.x / 32, count = 0;
    places<sets> p(shared, stages);
    ring tiles = { p.tiles + warp * stages * STAGE, p.scales + warp * stages * 2 * STEP,
                   p.r->full[warp], stages };
    tiles.open(a, maps);
    roll units = look_up(a, blockIdx.x);
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    compute_roll<sets>(p, &tiles, a, maps, units, &count);
#pragma unroll 1
    for (uint32_t first = blockIdx.x + 32 * gridDim.x; first < units_of(a);
         first += 32 * gridDim.x) {
        units = look_up(a, first);
        compute_roll<sets>(p, &tiles, a, maps, units, &count);
    }
#endif
}

/* ---- Launch --------------------------------------------------------------------------------- */

template <int sets> static size_t shared_of(int heads, int stages)
{
    return sizeof(room<sets>) +
           (size_t) WARPS * ((size_t) stages * (STAGE + 2 * STEP * sizeof(float)) +
                             2 * (size_t) heads * SLOT * sizeof(float));
}

template <int sets>
static int launch(const ft_cuda_chip *chip, void *stream, const ft_attend_job *a)
{
    int heads = a->group < HEADS ? a->group : HEADS, stages = MOST_STAGES;
    while (stages > 1 && shared_of<sets>(heads, stages) > chip->shared)
        stages--;
    size_t bytes = shared_of<sets>(heads, stages);
    if (bytes > chip->shared)
        return (int) cudaErrorNotSupported;
    codes_maps maps;
    const CUtensorMapL2promotion none = CU_TENSOR_MAP_L2_PROMOTION_NONE;
    int status = ft_map_codes(&maps.keys, a->keys, a->cached_rows, WIDTH, STEP, none);
    if (status == 0)
        status = ft_map_codes(&maps.values, a->values, a->cached_rows, WIDTH, STEP, none);
    if (status == 0)
        status = (int) cudaFuncSetAttribute(
            codes_kernel<sets>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) bytes);
    if (status != 0)
        return status;
    size_t units = a->sequences * (size_t) a->groups * (size_t) a->shares;
    size_t blocks = (size_t) chip->multiprocessors;
    return ft_launch(codes_kernel<sets>, dim3((unsigned) (units < blocks ? units : blocks)),
                     dim3(THREADS), bytes, stream, chip->overlaps, 1, *a, maps, stages);
}

/*
 * Upper bound of the units per row: at least what unit_keys_of() returns, for a sliding window that
 * may begin inside a unit.
 */
static int units_within(const ft_attend_job *a)
{
    size_t keys =
        a->window > 0 && (size_t) a->window < a->context ? (size_t) a->window : a->context;
    size_t units = (keys >> UNIT_SHIFT) + 1;
    return (int) (units < MOST_UNITS ? units : MOST_UNITS);
}

int ft_cuda_attend_codes(const ft_cuda_chip *chip, void *stream, const ft_attend_job *job)
{
    ft_attend_job a = *job;
    if (!chip->overlaps || a.cache_dtype != FT_I8 || a.head_size != WIDTH ||
        (a.q_dtype != FT_F16 && a.q_dtype != FT_BF16) || a.cached_rows > INT32_MAX ||
        a.origin != NULL)
        return (int) cudaErrorNotSupported;
    a.shares = units_within(&a);
    a.groups = a.kv_heads * ((a.group + HEADS - 1) / HEADS);
    if (a.sequences * (size_t) a.groups * (size_t) a.shares > INT32_MAX / 64)
        return (int) cudaErrorInvalidValue;
    return a.group > 4 ? launch<2>(chip, stream, &a) : launch<1>(chip, stream, &a);
}
