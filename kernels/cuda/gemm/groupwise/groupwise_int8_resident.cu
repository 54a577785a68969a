/*
 * groupwise_int8_resident.cu - INT8 GEMM with group-wise quantized weights for up to 16 tokens,
 * whose quantized activations stay resident in shared memory.
 *
 * In groupwise_int8_small_m.cu each stage has a record next to the weights, which leaves too few
 * weights in flight. Here records stay in shared memory across panels and pipelines contain weights
 * only. Most warps multiply, one k tile each per round. They store exact sums, which the reduction
 * warps accumulate group by group, four rows of a token per lane, while the next round is
 * multiplied. 12288 x 4096 with 8 bits and 16 tokens took 21.9 us on an H200 with records in the
 * pipelines, 17.2 this way.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/groupwise/groupwise_int8_small_m.cuh"
#include "kernels/cuda/ptx/named_barrier.cuh"

enum {
    REDUCE_WARPS = 4, /* warps, each with TOKENS tokens */
    TOKENS = 4,
    THREADS = INT8_THREADS + 32 * REDUCE_WARPS,
    FULL = 1, /* named barriers of all threads; + 1 for odd rounds */
    EMPTY = 3
};

/* GROUPS: groups per k tile, 1, 2 or 4 */
template <int BITS, int M8_TILES, int GROUPS>
struct resident_config : int8_small_m_config<BITS, M8_TILES> {
    using small_m = int8_small_m_config<BITS, M8_TILES>;
    static constexpr int groups = GROUPS, blocks = BITS / 4; /* blocks: 16-byte loads per 32
                                                              * columns */
    static constexpr bool small = BITS == 4 || GROUPS > 1;   /* int8_is_small() */
    static constexpr int x_term = small_m::x_scale + groups * small_m::tokens * 4;
    static constexpr int sum = small_m::sum_scale + GROUPWISE_PANEL_ROWS * 2;
};

/* ---- Mainloop ------------------------------------------------------------------------------- */

/* A lane's part of a k tile, loaded from the pipeline. */
template <class CONFIG> struct resident_k_tile {
    uint4 qweights[INT8_STEPS * CONFIG::blocks];
    uint2 scale;    /* of the lane's four rows and group t of the k tile */
    uint32_t zeros; /* likewise */

    __device__ __forceinline__ resident_k_tile(int8_small_m_pipeline<CONFIG> &pipeline,
                                               const int8_small_m_params &shape)
    {
        const char *stage = pipeline.wait();
        int g = pipeline.lane / 4, t = pipeline.lane % 4;
        zeros = CONFIG::bits == 4 ? 0x08080808 : 0x80808080;
#pragma unroll
        for (int i = 0; i < INT8_STEPS * CONFIG::blocks; i++)
            qweights[i] = *(const uint4 *) (stage + i * GROUPWISE_WARP_BYTES +
                                            groupwise_smem_read_offset((unsigned) pipeline.lane));
        if (t < CONFIG::groups) {
            scale = *(const uint2 *) (stage + shape.scales_at + t * 64 + g * 8);
            if (shape.has_zeros)
                zeros =
                    *(const uint32_t *) (stage + shape.zeros_at + t * GROUPWISE_PANEL_ROWS + 4 * g);
        }
        pipeline.release();
    }
};

/* End of a group: store its sums as floats, corrected for zero points, and the scales of its rows.
 */
template <class CONFIG>
__device__ __forceinline__ void store_acc(char *to, const int8_acc (&sum)[CONFIG::m8_tiles],
                                          const int8_weight_sums &weight_sum, const char *record,
                                          bool has_zeros, const resident_k_tile<CONFIG> &k_tile,
                                          int group, int lane)
{
    const char *x_term = record + CONFIG::x_term + group * CONFIG::tokens * 4;
    int g = lane / 4, t = lane % 4;
    uint32_t zeros = k_tile.zeros;
    if (has_zeros)
        zeros = __shfl_sync(~0u, zeros, (lane & ~3) + group);
#pragma unroll
    for (int i = 0; i < CONFIG::m8_tiles; i++) {
        int2 term = *(const int2 *) (x_term + (i * 8 + 2 * t) * 4);
#pragma unroll
        for (int c = 0; c < 2; c++) {
            float value[4];
#pragma unroll
            for (int row = 0; row < 4; row++)
                value[row] = int8_sum_to_float(
                    ft_int8_exact_sum(sum[i][row / 2][row % 2 * 2 + c], c == 0 ? term.x : term.y,
                                      int8_zero_point<CONFIG::bits>(zeros, row), weight_sum[row]),
                    CONFIG::small);
            *(float4 *) ((float *) to + (i * 8 + 2 * t + c) * INT8_ACC_PITCH + 4 * g) =
                make_float4(value[0], value[1], value[2], value[3]);
        }
    }
    if (t == group)
        *(uint2 *) (to + CONFIG::sum_scale + g * 8) = k_tile.scale;
}

template <class CONFIG>
__device__ __forceinline__ void mma_k_tile(char *to, int8_small_m_pipeline<CONFIG> &pipeline,
                                           const int8_small_m_params &shape, const char *record)
{
    const resident_k_tile<CONFIG> k_tile(pipeline, shape);
    int8_acc sum[CONFIG::m8_tiles];
    int8_weight_sums weight_sum;
#pragma unroll
    for (int k_step = 0; k_step < INT8_STEPS; k_step++) {
        uint32_t a[2][4], x[4];
        uint4 own[CONFIG::blocks];
        int group = k_step * CONFIG::groups / INT8_STEPS;
        if (k_step * CONFIG::groups % INT8_STEPS == 0) {
            int8_begin_sums(sum, CONFIG::small);
            weight_sum.reset();
        }
#pragma unroll
        for (int i = 0; i < CONFIG::blocks; i++)
            own[i] = k_tile.qweights[k_step * CONFIG::blocks + i];
        int8_unpack_weights<CONFIG::bits>(a, own);
        weight_sum.add(a);
        int8_load_x_frag<CONFIG::m8_tiles>(x, record, 0, k_step, pipeline.lane);
#pragma unroll
        for (int i = 0; i < CONFIG::m8_tiles; i++)
#pragma unroll
            for (int j = 0; j < 2; j++)
                ft_mma_i8(sum[i][j], a[j], x[2 * i], x[2 * i + 1]);
        if ((k_step + 1) * CONFIG::groups % INT8_STEPS == 0)
            store_acc<CONFIG>(to + group * CONFIG::sum, sum, weight_sum, record, shape.has_zeros,
                              k_tile, group, pipeline.lane);
    }
}

/* The warp's k tiles of all panels of the thread block. */
template <class CONFIG>
__device__ __forceinline__ void multiply(int8_small_m_pipeline<CONFIG> &pipeline,
                                         const int8_small_m_params &shape, char *sums,
                                         const char *x)
{
    int round = 0;
    for (int panel = (int) blockIdx.x * shape.panels; panel < pipeline.end_panel; panel++)
        for (int begin = 0; begin < shape.x.k_tiles; begin += INT8_WARPS, round++) {
            int k_tile = begin + pipeline.warp, buffer = round % 2;
            if (round >= 2)
                ft_named_barrier_sync(EMPTY + buffer, THREADS);
            if (k_tile < shape.x.k_tiles)
                mma_k_tile<CONFIG>(sums + buffer * shape.sums +
                                       pipeline.warp * CONFIG::groups * CONFIG::sum,
                                   pipeline, shape, x + k_tile * shape.x.bytes);
            if (!pipeline.has_weights()) /* no more loads from here on */
                ft_pdl_launch_dependents();
            ft_named_barrier_arrive(FULL + buffer, THREADS);
        }
}

/* ---- Reduction ------------------------------------------------------------------------------ */

/* Four rows of a token, some groups from the k tile of `record`. */
template <class CONFIG>
__device__ __forceinline__ void reduce_groups(float (&total)[4], const char *sums,
                                              const char *record, int groups, int bytes, int token,
                                              int quad)
{
    const char *scales = sums + CONFIG::sum_scale + quad * 8;
    sums += token * INT8_ACC_PITCH * 4 + quad * 16;
    record += CONFIG::x_scale + token * 4;
#pragma unroll 8
    for (int i = 0; i < groups; i++) {
        float4 sum = *(const float4 *) (sums + i * CONFIG::sum);
        float of_x = *(const float *) (record + i / CONFIG::groups * bytes +
                                       i % CONFIG::groups * CONFIG::tokens * 4);
        float scale[4];
        groupwise_load_scales(scale, scales + i * CONFIG::sum);
        total[0] = ft_groupwise_accumulate(total[0], sum.x, scale[0], of_x);
        total[1] = ft_groupwise_accumulate(total[1], sum.y, scale[1], of_x);
        total[2] = ft_groupwise_accumulate(total[2], sum.z, scale[2], of_x);
        total[3] = ft_groupwise_accumulate(total[3], sum.w, scale[3], of_x);
    }
}

template <class CONFIG>
__device__ __forceinline__ void reduce(const ft_cuda_groupwise_args &p,
                                       const int8_small_m_params &shape, const char *sums,
                                       const char *x)
{
    constexpr int max_groups = INT8_WARPS * CONFIG::groups;
    int lane = (int) threadIdx.x % 32, quad = lane % 8, round = 0;
    int token = ((int) threadIdx.x / 32 - INT8_WARPS) * TOKENS + lane / 8;
    int panel = (int) blockIdx.x * shape.panels, end_panel = panel + shape.panels;
    end_panel = end_panel < shape.all.panels ? end_panel : shape.all.panels;
    int rounds = (end_panel - panel) * ((shape.x.k_tiles + INT8_WARPS - 1) / INT8_WARPS);
    for (; panel < end_panel; panel++) {
        float total[4] = {};
        for (int begin = 0; begin < shape.x.k_tiles; begin += INT8_WARPS, round++) {
            int buffer = round % 2, groups = shape.groups - begin * CONFIG::groups;
            ft_named_barrier_sync(FULL + buffer, THREADS);
            if (token < CONFIG::tokens)
                reduce_groups<CONFIG>(total, sums + buffer * shape.sums, x + begin * shape.x.bytes,
                                      groups < max_groups ? groups : max_groups, shape.x.bytes,
                                      token, quad);
            if (round + 2 < rounds)
                ft_named_barrier_arrive(EMPTY + buffer, THREADS);
        }
        int own = panel;
        const ft_cuda_groupwise_linear &linear = p.linear[groupwise_linear_of(shape.all, own)];
        if (token < (int) p.m)
            groupwise_store<4>(p, linear, (size_t) token,
                               (size_t) own * GROUPWISE_PANEL_ROWS + quad * 4, total);
    }
}

/* grid = ceil(panels / panels per block) */
template <int bits, int M8_TILES, int GROUPS>
static __global__ void __launch_bounds__(THREADS, 1)
    int8_resident_kernel(const __grid_constant__ ft_cuda_groupwise_args p,
                         const __grid_constant__ int8_small_m_params shape)
{
    using form = resident_config<bits, M8_TILES, GROUPS>;
    extern __shared__ __align__(128) char shared[]; /* pipelines, sums of two rounds, records */
    char *sums = shared + shape.sums_at, *x = sums + 2 * shape.sums;
    if (threadIdx.x >= INT8_THREADS) {
        ft_pdl_wait();
        reduce<form>(p, shape, sums, x);
        return;
    }
    int8_small_m_pipeline<form> pipeline(p, shape, shared, x);
    pipeline.prefetch_weights();
    ft_pdl_wait();
    pipeline.prefetch_tokens();
    multiply<form>(pipeline, shape, sums, x);
}

/* ---- Host ----------------------------------------------------------------------------------- */

static size_t bytes_of(const int8_small_m_params *s)
{
    return (size_t) s->sums_at + 2 * s->sums + (size_t) s->x.k_tiles * s->x.bytes;
}

template <int bits, int M8_TILES, int GROUPS>
static int8_small_m_params params_of(const ft_cuda_device_props *props,
                                     const ft_cuda_groupwise_args *p)
{
    using form = resident_config<bits, M8_TILES, GROUPS>;
    int8_small_m_params s = {};
    s.all = groupwise_shape_of(p);
    s.x = int8_x_records_of(p, form::tokens, true);
    s.groups = ((int) p->k + p->group - 1) / p->group;
    s.panels = (s.all.panels + props->sm_count - 1) / props->sm_count;
    s.has_zeros = p->linear[0].zero != NULL;
    s.scales_at = form::weights;
    s.zeros_at = s.scales_at + GROUPS * 64;
    s.stage = s.zeros_at + (s.has_zeros ? GROUPS * 32 : 0);
    s.sums = INT8_WARPS * GROUPS * form::sum;
    /* Outstanding prefetches delay the records. Only short pipelines benefit from a third stage. */
    for (s.n_stages = M8_TILES == 1 && s.panels > 1 ? 3 : 2;; s.n_stages--) {
        s.sums_at = s.n_stages * INT8_WARPS * s.stage;
        if (s.n_stages == 2 || bytes_of(&s) <= props->smem_bytes)
            break;
    }
    return s;
}

template <int bits, int M8_TILES, int GROUPS>
static int launch(const ft_cuda_device_props *props, void *stream, const ft_cuda_groupwise_args *p)
{
    int8_small_m_params shape = params_of<bits, M8_TILES, GROUPS>(props, p);
    auto *kernel = int8_resident_kernel<bits, M8_TILES, GROUPS>;
    unsigned blocks = ft_ceil_div((size_t) shape.all.panels, (unsigned) shape.panels);
    int status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            (int) bytes_of(&shape));
    if (status == 0)
        status = int8_quantize_x<bits>(props, stream, p, &shape.x);
    if (status == 0)
        status = ft_launch(kernel, dim3(blocks), THREADS, bytes_of(&shape), stream, props->has_pdl,
                           1, *p, shape);
    return status;
}

/* Whether it fits into shared memory. */
template <int bits, int GROUPS>
static bool fits(const ft_cuda_device_props *props, const ft_cuda_groupwise_args *p)
{
    int8_small_m_params shape =
        p->m <= 8 ? params_of<bits, 1, GROUPS>(props, p) : params_of<bits, 2, GROUPS>(props, p);
    return bytes_of(&shape) <= props->smem_bytes;
}

template <int bits>
static bool fits_group(const ft_cuda_device_props *props, const ft_cuda_groupwise_args *p)
{
    return p->group == 128  ? fits<bits, 1>(props, p)
           : p->group == 64 ? fits<bits, 2>(props, p)
                            : p->group == 32 && fits<bits, 4>(props, p);
}

bool ft_cuda_groupwise_int8_resident_supports(const ft_cuda_device_props *props,
                                              const ft_cuda_groupwise_args *p)
{
    return p->m <= 16 && p->scratch_bytes >= ft_cuda_groupwise_int8_small_m_scratch(p->m, p->k) &&
           (p->bits == 4 ? fits_group<4>(props, p) : fits_group<8>(props, p));
}

template <int bits, int GROUPS>
static int launch_size(const ft_cuda_device_props *props, void *stream,
                       const ft_cuda_groupwise_args *p)
{
    return p->m <= 8 ? launch<bits, 1, GROUPS>(props, stream, p)
                     : launch<bits, 2, GROUPS>(props, stream, p);
}

template <int bits>
static int launch_group(const ft_cuda_device_props *props, void *stream,
                        const ft_cuda_groupwise_args *p)
{
    return p->group == 128  ? launch_size<bits, 1>(props, stream, p)
           : p->group == 64 ? launch_size<bits, 2>(props, stream, p)
                            : launch_size<bits, 4>(props, stream, p);
}

int ft_cuda_groupwise_int8_resident(const ft_cuda_device_props *props, void *stream,
                                    const ft_cuda_groupwise_args *p)
{
    return p->bits == 4 ? launch_group<4>(props, stream, p) : launch_group<8>(props, stream, p);
}
