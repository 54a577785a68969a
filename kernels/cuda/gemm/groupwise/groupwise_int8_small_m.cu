/*
 * groupwise_int8_small_m.cu - INT8 GEMM with group-wise quantized weights for few tokens, bound by
 * reading the weights.
 *
 * One kernel quantizes x. In the other a thread block has some panels and up to 32 tokens; each of
 * its warps processes every eighth k tile of 128 columns with its own pipeline, so that many copies
 * are in flight and warps synchronize only once per eight k tiles. Then their exact sums are
 * accumulated group by group, a row per lane.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/groupwise/groupwise_int8_small_m.cuh"

enum {
    RESERVED = 1024, /* bytes per thread block, by the system */
    MAX_STAGES = 3,
    MAX_ROUNDS = 4, /* iterations of all warps between reductions */
    MAX_M = 128     /* beyond, larger tiles are faster */
};

/* ---- One k tile ----------------------------------------------------------------------------- */

/*
 * Store the exact sums of a group, corrected for zero points, and its scales. `group` is the index
 * in the k tile.
 */
template <class CONFIG>
__device__ __forceinline__ void store_acc(char *to, int8_acc (&sum)[CONFIG::m8_tiles],
                                          int8_weight_sums &weight_sum, const char *stage,
                                          const int8_small_m_params &shape, int group, int lane)
{
    int g = lane / 4, t = lane % 4;
    const char *x_scale = stage + CONFIG::weights + CONFIG::x_scale + group * CONFIG::tokens * 4;
    const char *x_term = x_scale + shape.x.groups_per_k_tile * CONFIG::tokens * 4;
    uint32_t zeros = CONFIG::bits == 4 ? 0x08080808 : 0x80808080;
    bool small = int8_is_small<CONFIG::bits>(shape.x.group);
    if (shape.has_zeros)
        zeros = *(const uint32_t *) (stage + shape.zeros_at + group * GROUPWISE_PANEL_ROWS + 4 * g);
#pragma unroll
    for (int i = 0; i < CONFIG::m8_tiles; i++) {
        int2 term = *(const int2 *) (x_term + (i * 8 + 2 * t) * 4);
#pragma unroll
        for (int c = 0; c < 2; c++) {
            float value[4];
#pragma unroll
            for (int row = 0; row < 4; row++) {
                int32_t &products = sum[i][row / 2][row % 2 * 2 + c];
                int32_t exact =
                    ft_int8_exact_sum(products, c == 0 ? term.x : term.y,
                                      int8_zero_point<CONFIG::bits>(zeros, row), weight_sum[row]);
                value[row] = int8_sum_to_float(exact, small);
                products = int8_begin_sum(small);
            }
            *(float4 *) ((float *) to + (i * 8 + 2 * t + c) * INT8_ACC_PITCH + 4 * g) =
                make_float4(value[0], value[1], value[2], value[3]);
        }
    }
    weight_sum.reset();
    if (t == 0)
        *(uint2 *) (to + CONFIG::sum_scale + g * 8) =
            *(const uint2 *) (stage + shape.scales_at + group * 64 + g * 8);
    if (lane < CONFIG::tokens)
        *(float *) (to + CONFIG::sum_x_scale + lane * 4) = *(const float *) (x_scale + lane * 4);
}

/* Sums of the warp's next k tile, which starts at `column`. */
template <class CONFIG>
__device__ __forceinline__ void mma_k_tile(char *to, int8_small_m_pipeline<CONFIG> &pipeline,
                                           const int8_small_m_params &shape, int column)
{
    constexpr int blocks = CONFIG::bits / 4;
    const char *stage = pipeline.wait();
    int lane = pipeline.lane, group = 0;
    int8_acc sum[CONFIG::m8_tiles];
    int8_weight_sums weight_sum;
    int8_begin_sums(sum, int8_is_small<CONFIG::bits>(shape.x.group));
#pragma unroll
    for (int k_step = 0; k_step < INT8_STEPS; k_step++) {
        uint32_t a[2][4], x[4];
        uint4 own[blocks];
        if (column >= shape.all.k)
            break;
        column += GROUPWISE_STEP_K;
#pragma unroll
        for (int i = 0; i < blocks; i++)
            own[i] = *(const uint4 *) (stage + (k_step * blocks + i) * GROUPWISE_WARP_BYTES +
                                       groupwise_smem_read_offset((unsigned) lane));
        int8_unpack_weights<CONFIG::bits>(a, own);
        weight_sum.add(a);
#pragma unroll
        for (int i = 0; i < CONFIG::m8_tiles; i++) {
            if (i % 2 == 0)
                int8_load_x_frag<CONFIG::m8_tiles>(x, stage + CONFIG::weights, i, k_step, lane);
#pragma unroll
            for (int j = 0; j < 2; j++)
                ft_mma_i8(sum[i][j], a[j], x[i % 2 * 2], x[i % 2 * 2 + 1]);
        }
        if ((k_step + 1) * shape.x.groups_per_k_tile % INT8_STEPS == 0 || column >= shape.all.k) {
            store_acc<CONFIG>(to + group * CONFIG::sum, sum, weight_sum, stage, shape, group, lane);
            group++;
        }
    }
    pipeline.release();
}

/* ---- Reduction ------------------------------------------------------------------------------ */

/* A row per lane; a warp has every eighth token. */
template <class CONFIG>
__device__ __forceinline__ void reduce(float (&total)[CONFIG::m8_tiles], const char *sums,
                                       int groups, int tokens)
{
    int warp = (int) threadIdx.x / 32, lane = (int) threadIdx.x % 32;
    if (warp >= tokens)
        return;
#pragma unroll 8
    for (int i = 0; i < groups; i++, sums += CONFIG::sum) {
        float scale = __half2float(((const __half *) (sums + CONFIG::sum_scale))[lane]);
#pragma unroll
        for (int j = 0; j < CONFIG::m8_tiles; j++) {
            int token = warp + INT8_WARPS * j;
            float sum = ((const float *) sums)[token * INT8_ACC_PITCH + lane];
            float x_scale = ((const float *) (sums + CONFIG::sum_x_scale))[token];
            total[j] = ft_groupwise_accumulate(total[j], sum, scale, x_scale);
        }
    }
}

template <class CONFIG>
__device__ __forceinline__ void
store_rows(const ft_cuda_groupwise_args &p, const groupwise_shape &shape,
           float (&total)[CONFIG::m8_tiles], int panel, int first, int tokens)
{
    int warp = (int) threadIdx.x / 32, lane = (int) threadIdx.x % 32;
    const ft_cuda_groupwise_linear &linear = p.linear[groupwise_linear_of(shape, panel)];
#pragma unroll
    for (int i = 0; i < CONFIG::m8_tiles; i++)
        if (warp + INT8_WARPS * i < tokens)
            groupwise_store<1>(p, linear, (size_t) first + warp + INT8_WARPS * i,
                               (size_t) panel * GROUPWISE_PANEL_ROWS + lane, &total[i]);
}

/* grid = (ceil(panels / panels per block), tiles of tokens) */
template <int bits, int M8_TILES>
static __global__ void __launch_bounds__(INT8_THREADS, M8_TILES == 1 ? 2 : 1)
    int8_small_m_kernel(const __grid_constant__ ft_cuda_groupwise_args p,
                        const __grid_constant__ int8_small_m_params shape)
{
    using form = int8_small_m_config<bits, M8_TILES>;
    extern __shared__ __align__(128) char shared[];
    int first = (int) blockIdx.y * form::tokens, buffer = 0;
    int tokens = (int) p.m - first < form::tokens ? (int) p.m - first : form::tokens;
    int panel = (int) blockIdx.x * shape.panels;
    int8_small_m_pipeline<form> pipeline(p, shape, shared, NULL);
    pipeline.prefetch_weights();
    ft_pdl_wait();
    pipeline.prefetch_tokens();
    for (; panel < pipeline.end_panel; panel++) {
        float total[M8_TILES] = {};
        for (int begin = 0; begin < shape.x.k_tiles; begin += shape.phase, buffer ^= 1) {
            char *sums = shared + shape.sums_at + buffer * shape.sums;
            int end = begin + shape.phase < shape.x.k_tiles ? begin + shape.phase : shape.x.k_tiles;
            for (int k_tile = begin + pipeline.warp; k_tile < end; k_tile += INT8_WARPS) {
                mma_k_tile<form>(sums + (k_tile - begin) * shape.x.groups_per_k_tile * form::sum,
                                 pipeline, shape, k_tile * GROUPWISE_TILE_K);
                if (!pipeline.has_weights()) /* no more loads from here on */
                    ft_pdl_launch_dependents();
            }
            __syncthreads();
            int groups = end * shape.x.groups_per_k_tile < shape.groups
                             ? end * shape.x.groups_per_k_tile
                             : shape.groups;
            reduce<form>(total, sums, groups - begin * shape.x.groups_per_k_tile, tokens);
        }
        store_rows<form>(p, shape.all, total, panel, first, tokens);
    }
}

/* ---- Host ----------------------------------------------------------------------------------- */

static size_t k_tiles_of(size_t k)
{
    return (k + GROUPWISE_TILE_K - 1) / GROUPWISE_TILE_K;
}

static int tile_tokens_of(size_t m)
{
    return m <= 8 ? 8 : m <= 16 ? 16 : 32;
}

/* int8 values, and for each 32 of them a scale and a term. */
size_t ft_cuda_groupwise_int8_small_m_scratch(size_t m, size_t k)
{
    size_t tokens = (m + 31) / 32 * 32;
    return tokens * k_tiles_of(k) * (GROUPWISE_TILE_K + GROUPWISE_TILE_K / GROUPWISE_STEP_K * 8);
}

static int min_int(int n, int max_value)
{
    return n < max_value ? n : max_value;
}

/*
 * Half of an SM's shared memory if two stages and one iteration fit, else all of it; as many
 * iterations between reductions as fit, then stages.
 */
template <class CONFIG>
static void layout_smem(int8_small_m_params *s, const ft_cuda_device_props *props)
{
    int half_smem = (int) (props->smem_bytes + RESERVED) / 2 - RESERVED;
    s->scales_at = CONFIG::weights + s->x.bytes;
    s->zeros_at = s->scales_at + s->x.groups_per_k_tile * 64;
    s->stage = s->zeros_at + (s->has_zeros ? s->x.groups_per_k_tile * 32 : 0);
    int stage_set_bytes = INT8_WARPS * s->stage,
        round = INT8_WARPS * s->x.groups_per_k_tile * CONFIG::sum;
    s->x.early_dependents = 2 * stage_set_bytes + 2 * round > half_smem;
    int smem_limit = s->x.early_dependents ? (int) props->smem_bytes : half_smem;
    int rounds = min_int((smem_limit - 2 * stage_set_bytes) / (2 * round), MAX_ROUNDS);
    rounds = rounds < 1 ? 1 : rounds;
    s->phase = rounds * INT8_WARPS;
    s->sums = rounds * round;
    s->n_stages = min_int((smem_limit - 2 * s->sums) / stage_set_bytes, MAX_STAGES);
    s->n_stages = s->n_stages < 2 ? 2 : s->n_stages;
    s->sums_at = stage_set_bytes * s->n_stages;
}

template <int bits, int M8_TILES>
static int8_small_m_params params_of(const ft_cuda_device_props *props,
                                     const ft_cuda_groupwise_args *p)
{
    int8_small_m_params s = {};
    s.all = groupwise_shape_of(p);
    s.x = int8_x_records_of(p, 8 * M8_TILES, false);
    s.groups = ((int) p->k + p->group - 1) / p->group;
    s.has_zeros = p->linear[0].zero != NULL;
    int tiles = ((int) p->m + s.x.tokens - 1) / s.x.tokens;
    s.panels = (s.all.panels * tiles + props->sm_count - 1) / props->sm_count;
    s.panels = min_int(s.panels, s.all.panels);
    layout_smem<int8_small_m_config<bits, M8_TILES>>(&s, props);
    return s;
}

template <int bits, int M8_TILES>
static int launch(const ft_cuda_device_props *props, void *stream, const ft_cuda_groupwise_args *p)
{
    using form = int8_small_m_config<bits, M8_TILES>;
    int8_small_m_params shape = params_of<bits, M8_TILES>(props, p);
    auto *kernel = int8_small_m_kernel<bits, M8_TILES>;
    size_t bytes = (size_t) shape.sums_at + 2 * shape.sums;
    dim3 grid(ft_ceil_div((size_t) shape.all.panels, (unsigned) shape.panels),
              ft_ceil_div(p->m, form::tokens));
    int status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            (int) bytes);
    if (status == 0)
        status = int8_quantize_x<bits>(props, stream, p, &shape.x);
    if (status == 0)
        status = ft_launch(kernel, grid, INT8_THREADS, bytes, stream, props->has_pdl, 1, *p, shape);
    return status;
}

template <int bits>
static bool fits(const ft_cuda_device_props *props, const ft_cuda_groupwise_args *p)
{
    int8_small_m_params shape = tile_tokens_of(p->m) == 8    ? params_of<bits, 1>(props, p)
                                : tile_tokens_of(p->m) == 16 ? params_of<bits, 2>(props, p)
                                                             : params_of<bits, 4>(props, p);
    return (size_t) shape.sums_at + 2 * shape.sums <= props->smem_bytes;
}

bool ft_cuda_groupwise_int8_small_m_supports(const ft_cuda_device_props *props,
                                             const ft_cuda_groupwise_args *p)
{
    return p->m <= MAX_M && p->group != 0 && GROUPWISE_TILE_K % p->group == 0 &&
           p->scratch_bytes >= ft_cuda_groupwise_int8_small_m_scratch(p->m, p->k) &&
           (p->bits == 4 ? fits<4>(props, p) : fits<8>(props, p));
}

template <int bits>
static int launch_size(const ft_cuda_device_props *props, void *stream,
                       const ft_cuda_groupwise_args *p)
{
    int tokens = tile_tokens_of(p->m);
    return tokens == 8    ? launch<bits, 1>(props, stream, p)
           : tokens == 16 ? launch<bits, 2>(props, stream, p)
                          : launch<bits, 4>(props, stream, p);
}

int ft_cuda_groupwise_int8_small_m(const ft_cuda_device_props *props, void *stream,
                                   const ft_cuda_groupwise_args *p)
{
    return p->bits == 4 ? launch_size<4>(props, stream, p) : launch_size<8>(props, stream, p);
}
