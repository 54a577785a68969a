/*
 * groupwise_int8.cu - GEMM of group-wise quantized weights and dynamically quantized int8
 * activations (W4A8, W8A8): exact int32 sums per group, float accumulation across groups
 * (ft_groupwise_accumulate(), kernels/groupwise.h).
 *
 * One kernel quantizes x with a scale per token and group, in the column order of the packed
 * weights, so that both are loaded into mma fragments without shuffles. The other computes some
 * panels of weights by up to 128 tokens per thread block, with the loop structure of
 * groupwise_mma.cu. Zero points are corrected as int8_x_term.h says, with the sums of the
 * activations and those of the weights, one more product per fragment; 8-bit weights are offset by
 * 128 to be signed. Few tokens are handled by groupwise_int8_small_m.cu and
 * groupwise_int8_resident.cu.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/groupwise/groupwise_int8.cuh"

enum {
    X_ROW_BYTES = GROUPWISE_TILE_K, /* bytes per token in a stage */
    STEPS = GROUPWISE_TILE_K / GROUPWISE_STEP_K
};

/* Launch parameters: int8 x [m, k padded], scales and terms of x [groups, m padded]. */
typedef struct int8_params {
    groupwise_shape all;
    int8_t *quantized;
    float *scale;
    int32_t *term;
    int padded_k, padded_m, groups;
} int8_params;

/* ---- Quantization of x ---------------------------------------------------------------------- */

__device__ __forceinline__ float load_element(const ft_cuda_groupwise_args &p, size_t at)
{
    float value;
    ft_load<1>(&value, p.x, p.x_dtype, at);
    return value;
}

/* A warp quantizes one group of a token. grid = (groups, m) */
template <int bits>
static __global__ void quantize_kernel(const __grid_constant__ ft_cuda_groupwise_args p,
                                       const __grid_constant__ int8_params shape)
{
    int group = (int) blockIdx.x, lane = (int) threadIdx.x, k = shape.all.k;
    int from = group == 0 ? 0 : group * shape.all.group;
    int to = k - from > shape.all.group ? from + shape.all.group : k;
    size_t row = blockIdx.y;
    int32_t high = 0, minus_low = 0, sum = 0;
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    for (int i = from + lane; i < to; i += 32) {
        float x = load_element(p, row * p.k + i);
        high = max(high, ft_positive_bits(x));
        minus_low = max(minus_low, ft_positive_bits(-x));
    }
    ft_groupwise_x_params params = int8_reduce_params(high, minus_low, 32);
    for (int i = from; i < to; i += 32) {
        float x = i + lane < to ? load_element(p, row * p.k + i + lane) : 0.0f;
        int32_t code = int8_quantize(x, params);
        shape.quantized[row * shape.padded_k + i + int8_k_position<bits>(lane)] = (int8_t) code;
        sum += code - params.zero;
    }
#pragma unroll
    for (int lane_distance = 16; lane_distance > 0; lane_distance /= 2)
        sum += __shfl_xor_sync(~0u, sum, lane_distance);
    if (lane == 0) {
        shape.scale[(size_t) group * shape.padded_m + row] = params.scale;
        shape.term[(size_t) group * shape.padded_m + row] = ft_int8_x_term(sum, params.zero);
    }
}

/* ---- Loads ---------------------------------------------------------------------------------- */

/* A thread block has PANELS panels, two warps each, and 16 * M8_TILES tokens. */
template <int bits, int PANELS, int M8_TILES> struct int8_config {
    static constexpr int threads = PANELS * 64, tokens = 16 * M8_TILES;
    static constexpr int panel = GROUPWISE_TILE_K * GROUPWISE_PANEL_ROWS * bits / 8;
    static constexpr int zeros_at = panel + STEPS * 64, own = zeros_at + STEPS * 32;
    static constexpr int x_at = PANELS * own, scales_at = x_at + tokens * X_ROW_BYTES;
    static constexpr int terms_at = scales_at + STEPS * tokens * 4;
    static constexpr int stage = terms_at + STEPS * tokens * 4;
    static constexpr int stages = PANELS == 1 ? 5 : 3, shared = stages * stage;
    static constexpr int blocks_per_sm = M8_TILES == 8 ? 1 : PANELS == 1 ? 5 : 2;
};

template <class CONFIG, int bits>
__device__ __forceinline__ void copy_weights(char *stage, const ft_cuda_groupwise_args &p,
                                             const int8_params &shape, int first_panel, int column)
{
    int warp = (int) threadIdx.x / 32, lane = (int) threadIdx.x % 32;
    int panel = first_panel + warp / 2;
    bool inside = panel < shape.all.panels;
    panel = inside ? panel : shape.all.panels - 1;
    int which = groupwise_linear_of(shape.all, panel);
    const ft_cuda_groupwise_linear &linear = p.linear[which];
    int at = column * (4 * bits) + warp % 2 * (CONFIG::panel / 2);
    const char *quantized = linear.w + (size_t) panel * shape.all.panel_bytes + lane * 16 + at;
    char *own = stage + warp / 2 * CONFIG::own, *to = own + warp % 2 * (CONFIG::panel / 2);
#pragma unroll
    for (int i = 0; i < CONFIG::panel / 2; i += GROUPWISE_WARP_BYTES)
        ft_cp_async_16(to + i + groupwise_smem_write_offset(lane), quantized + i,
                       inside && at + i < shape.all.panel_bytes);
    /* the first warp of a panel loads scales, the second zero points, for each step */
    bool scales = warp % 2 == 0;
    int k_step = scales ? lane / 4 : lane / 2, word = scales ? lane % 4 : lane % 2;
    int of = column + k_step * GROUPWISE_STEP_K;
    if (k_step >= STEPS || of >= shape.all.k || !inside)
        return;
    size_t index = (size_t) groupwise_group_of(shape.all, of) * shape.all.padded_n[which] +
                   panel * GROUPWISE_PANEL_ROWS + word * 8;
    if (scales)
        ft_cp_async_16(own + CONFIG::panel + k_step * 64 + word * 16, linear.scale + index, true);
    else if (linear.zero != NULL)
        ft_cp_async_16(own + CONFIG::zeros_at + k_step * 32 + word * 16,
                       linear.zero + index + word * 8, true);
}

template <class CONFIG>
__device__ __forceinline__ void copy_tokens(char *stage, const ft_cuda_groupwise_args &p,
                                            const int8_params &shape, int first_token, int column)
{
    for (int i = (int) threadIdx.x; i < CONFIG::tokens * 8; i += CONFIG::threads) {
        int token = i / 8, chunk = i % 8;
        size_t row = (size_t) (first_token + token);
        ft_cp_async_16(stage + CONFIG::x_at + token * X_ROW_BYTES + (chunk ^ token % 8) * 16,
                       shape.quantized + row * shape.padded_k + column + chunk * 16,
                       row < p.m && column + chunk * 16 < shape.padded_k);
    }
    for (int i = (int) threadIdx.x; i < CONFIG::tokens * 2 * STEPS / 4; i += CONFIG::threads) {
        int token = i * 4 % CONFIG::tokens, k_step = i * 4 / CONFIG::tokens % STEPS;
        bool scales = i * 4 < CONFIG::tokens * STEPS;
        int of = column + k_step * GROUPWISE_STEP_K;
        size_t index =
            (size_t) groupwise_group_of(shape.all, of) * shape.padded_m + first_token + token;
        if (of < shape.all.k)
            ft_cp_async_16(stage + (scales ? CONFIG::scales_at : CONFIG::terms_at) +
                               (k_step * CONFIG::tokens + token) * 4,
                           scales ? (const void *) (shape.scale + index) : shape.term + index,
                           true);
    }
}

/* ---- Mainloop ------------------------------------------------------------------------------- */

/* End of a group: scale its sums into the float accumulators and reset them. */
template <class CONFIG, int bits>
__device__ __forceinline__ void
scale_group(groupwise_acc (&total)[CONFIG::tokens / 16], int8_acc (&sum)[CONFIG::tokens / 16],
            int8_weight_sums &weight_sum, const char *stage, int k_step, bool has_zeros, bool small)
{
    int warp = (int) threadIdx.x / 32, lane = (int) threadIdx.x % 32, t = lane % 4;
    const char *own = stage + warp / 2 * CONFIG::own;
    float scale[4];
    int32_t zero[4];
    uint32_t zeros = bits == 4 ? 0x08080808 : 0x80808080;
    groupwise_load_scales(scale, own + CONFIG::panel + k_step * 64 + lane / 4 * 8);
    if (has_zeros)
        zeros = *(const uint32_t *) (own + CONFIG::zeros_at + k_step * 32 + lane / 4 * 4);
#pragma unroll
    for (int i = 0; i < 4; i++)
        zero[i] = int8_zero_point<bits>(zeros, i);
#pragma unroll
    for (int i = 0; i < CONFIG::tokens / 16; i++) {
        int token = k_step * CONFIG::tokens + warp % 2 * (CONFIG::tokens / 2) + i * 8 + 2 * t;
        float2 x_scale = *(const float2 *) (stage + CONFIG::scales_at + token * 4);
        int2 term = *(const int2 *) (stage + CONFIG::terms_at + token * 4);
#pragma unroll
        for (int j = 0; j < 8; j++) {
            int32_t exact = ft_int8_exact_sum(sum[i][j / 4][j % 4], j % 2 == 0 ? term.x : term.y,
                                              zero[j / 2], weight_sum[j / 2]);
            float factor = scale[j / 2] * (j % 2 == 0 ? x_scale.x : x_scale.y);
            total[i][j / 4][j % 4] =
                fmaf(int8_sum_to_float(exact, small), factor, total[i][j / 4][j % 4]);
            sum[i][j / 4][j % 4] = int8_begin_sum(small);
        }
    }
    weight_sum.reset();
}

/* x of 8-token tile `i` of the warp, 32 columns: x[0] and x[1]; of the next tile: x[2], x[3]. */
template <class CONFIG>
__device__ __forceinline__ void load_x_frag(uint32_t (&x)[4], const char *stage, int i, int k_step)
{
    int warp = (int) threadIdx.x / 32, lane = (int) threadIdx.x % 32;
    int m8_tile = CONFIG::tokens > 16 ? i + lane / 16 : i;
    int token = warp % 2 * (CONFIG::tokens / 2) + m8_tile * 8 + lane % 8;
    int chunk = (k_step * 2 + lane / 8 % 2) ^ lane % 8;
    ft_ldmatrix_x4(x, stage + CONFIG::x_at + token * X_ROW_BYTES + chunk * 16);
}

/* grid = (tiles of tokens, tiles of panels) */
template <int bits, int PANELS, int M8_TILES>
static __global__ void __launch_bounds__(64 * PANELS,
                                         (int8_config<bits, PANELS, M8_TILES>::blocks_per_sm))
    int8_kernel(const __grid_constant__ ft_cuda_groupwise_args p,
                const __grid_constant__ int8_params shape)
{
    using form = int8_config<bits, PANELS, M8_TILES>;
    constexpr int blocks = bits / 4, pair = M8_TILES > 1 ? 2 : 1;
    extern __shared__ __align__(128) char shared[];
    int first_token = (int) blockIdx.x * form::tokens, first_panel = (int) blockIdx.y * PANELS;
    int warp = (int) threadIdx.x / 32, lane = (int) threadIdx.x % 32;
    bool has_zeros = p.linear[0].zero != NULL, small = int8_is_small<bits>(shape.all.group);
    groupwise_acc total[M8_TILES];
    int8_acc sum[M8_TILES];
    int8_weight_sums weight_sum;
#pragma unroll
    for (int i = 0; i < M8_TILES; i++)
        groupwise_zero_acc(total[i]);
    int8_begin_sums(sum, small);
    for (int i = 0; i < form::stages - 1; i++) /* weights do not depend on the predecessor */
        if (i * GROUPWISE_TILE_K < shape.all.k)
            copy_weights<form, bits>(shared + i * form::stage, p, shape, first_panel,
                                     i * GROUPWISE_TILE_K);
    ft_pdl_wait();
    for (int i = 0; i < form::stages - 1; i++) {
        if (i * GROUPWISE_TILE_K < shape.all.k)
            copy_tokens<form>(shared + i * form::stage, p, shape, first_token,
                              i * GROUPWISE_TILE_K);
        ft_cp_async_commit();
    }
    ft_pdl_launch_dependents();
    int read_stage = 0, write_stage = form::stages - 1;
    for (int column = 0; column < shape.all.k; column += GROUPWISE_TILE_K) {
        ft_cp_async_wait<form::stages - 2>();
        __syncthreads(); /* this stage has arrived, and all warps have read the previous one */
        int next = column + (form::stages - 1) * GROUPWISE_TILE_K;
        if (next < shape.all.k) {
            copy_weights<form, bits>(shared + write_stage * form::stage, p, shape, first_panel,
                                     next);
            copy_tokens<form>(shared + write_stage * form::stage, p, shape, first_token, next);
        }
        ft_cp_async_commit();
        const char *stage = shared + read_stage * form::stage, *own = stage + warp / 2 * form::own;
#pragma unroll(M8_TILES == 1 ? STEPS : 1)
        for (int k_step = 0; k_step < STEPS && column + k_step * GROUPWISE_STEP_K < shape.all.k;
             k_step++) {
            uint32_t a[2][4], x[4];
            uint4 block[blocks];
            int end = column + (k_step + 1) * GROUPWISE_STEP_K;
#pragma unroll
            for (int i = 0; i < blocks; i++)
                block[i] = *(const uint4 *) (own + (k_step * blocks + i) * GROUPWISE_WARP_BYTES +
                                             groupwise_smem_read_offset(lane));
            int8_unpack_weights<bits>(a, block);
            weight_sum.add(a);
#pragma unroll
            for (int i = 0; i < M8_TILES; i++) {
                if (i % pair == 0)
                    load_x_frag<form>(x, stage, i, k_step);
#pragma unroll
                for (int j = 0; j < 2; j++)
                    ft_mma_i8(sum[i][j], a[j], x[i % pair * 2], x[i % pair * 2 + 1]);
            }
            if (end % shape.all.group == 0 || end >= shape.all.k)
                scale_group<form, bits>(total, sum, weight_sum, stage, k_step, has_zeros, small);
        }
        read_stage = read_stage + 1 == form::stages ? 0 : read_stage + 1;
        write_stage = write_stage + 1 == form::stages ? 0 : write_stage + 1;
    }
    int panel = first_panel + warp / 2, g = lane / 4, t = lane % 4;
    if (panel >= shape.all.panels)
        return;
    const ft_cuda_groupwise_linear &linear = p.linear[groupwise_linear_of(shape.all, panel)];
    size_t first = (size_t) first_token + warp % 2 * (form::tokens / 2) + 2 * t;
#pragma unroll
    for (int i = 0; i < 2 * M8_TILES; i++) {
        int c = i % 2;
        size_t token = first + i / 2 * 8 + c;
        float value[4] = { total[i / 2][0][c], total[i / 2][0][c + 2], total[i / 2][1][c],
                           total[i / 2][1][c + 2] };
        if (token < p.m)
            groupwise_store<4>(p, linear, token, (size_t) panel * GROUPWISE_PANEL_ROWS + 4 * g,
                               value);
    }
}

/* ---- Host ----------------------------------------------------------------------------------- */

static size_t groups_of(size_t k, int32_t group)
{
    return group == 0 ? 1 : (k + (size_t) group - 1) / (size_t) group;
}

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* Groups have at least 32 columns. */
size_t ft_cuda_groupwise_int8_scratch(size_t m, size_t k)
{
    size_t small_m = ft_cuda_groupwise_int8_small_m_scratch(m, k);
    size_t large_m = round_up(m * round_up(k, GROUPWISE_STEP_K), 256) +
                     8 * groups_of(k, GROUPWISE_STEP_K) * round_up(m, 128);
    size_t wgmma = ft_cuda_groupwise_int8_wgmma_scratch(m, k);
    size_t mma = small_m > large_m ? small_m : large_m;
    return mma > wgmma ? mma : wgmma;
}

static int8_params params_of(const ft_cuda_groupwise_args *p)
{
    int8_params s = {};
    s.all = groupwise_shape_of(p);
    s.padded_k = (int) round_up(p->k, GROUPWISE_STEP_K);
    s.padded_m = (int) round_up(p->m, 128);
    s.groups = (int) groups_of(p->k, p->group);
    s.quantized = (int8_t *) p->scratch;
    s.scale = (float *) ((char *) p->scratch + round_up(p->m * (size_t) s.padded_k, 256));
    s.term = (int32_t *) (s.scale + (size_t) s.groups * s.padded_m);
    return s;
}

template <int bits, int PANELS, int M8_TILES>
static int launch(const ft_cuda_device_props *props, void *stream, const ft_cuda_groupwise_args *p)
{
    using form = int8_config<bits, PANELS, M8_TILES>;
    auto *kernel = int8_kernel<bits, PANELS, M8_TILES>;
    int8_params shape = params_of(p);
    dim3 grid(ft_ceil_div(p->m, form::tokens), ft_ceil_div((size_t) shape.all.panels, PANELS));
    int status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            form::shared);
    if (status == 0)
        status = ft_launch(quantize_kernel<bits>, dim3((unsigned) shape.groups, (unsigned) p->m),
                           32, 0, stream, props->has_pdl, 1, *p, shape);
    if (status == 0)
        status = ft_launch(kernel, grid, form::threads, form::shared, stream, props->has_pdl, 1, *p,
                           shape);
    return status;
}

template <int bits>
static int launch_tile(ft_cuda_groupwise_int8_tile tile, const ft_cuda_device_props *props,
                       void *stream, const ft_cuda_groupwise_args *p)
{
    return tile == FT_CUDA_GROUPWISE_INT8_N32_M16    ? launch<bits, 1, 1>(props, stream, p)
           : tile == FT_CUDA_GROUPWISE_INT8_N128_M32 ? launch<bits, 4, 2>(props, stream, p)
                                                     : launch<bits, 4, 8>(props, stream, p);
}

/* Grids have up to 65535 rows of x, and as many tiles of panels. */
bool ft_cuda_groupwise_int8_supports(const ft_cuda_device_props *props,
                                     const ft_cuda_groupwise_args *p)
{
    (void) props;
    size_t group = p->group == 0 ? p->k : (size_t) p->group;
    return p->m <= 65535 && p->k <= 65536 &&
           (group <= FT_GROUPWISE_MAX_INT8_GROUP || p->k <= FT_GROUPWISE_MAX_INT8_GROUP) &&
           groupwise_shape_of(p).panels <= 65535 &&
           p->scratch_bytes >= ft_cuda_groupwise_int8_scratch(p->m, p->k);
}

template <int bits>
static bool fits(ft_cuda_groupwise_int8_tile tile, const ft_cuda_device_props *props)
{
    return tile == FT_CUDA_GROUPWISE_INT8_N32_M16 ||
           props->smem_bytes >= (size_t) (tile == FT_CUDA_GROUPWISE_INT8_N128_M32
                                              ? int8_config<bits, 4, 2>::shared
                                              : int8_config<bits, 4, 8>::shared);
}

bool ft_cuda_groupwise_int8_tile_fits(ft_cuda_groupwise_int8_tile tile,
                                      const ft_cuda_device_props *props,
                                      const ft_cuda_groupwise_args *p)
{
    if (tile >= FT_CUDA_GROUPWISE_INT8_WGMMA_N64_M32)
        return ft_cuda_groupwise_int8_wgmma_supports(props, p);
    return tile == FT_CUDA_GROUPWISE_INT8_RESIDENT
               ? ft_cuda_groupwise_int8_resident_supports(props, p)
           : tile == FT_CUDA_GROUPWISE_INT8_SMALL_M
               ? ft_cuda_groupwise_int8_small_m_supports(props, p)
               : (p->bits == 4 ? fits<4>(tile, props) : fits<8>(tile, props));
}

/* Single panels for few tokens: more thread blocks with less to read each. */
static ft_cuda_groupwise_int8_tile select_mma(const ft_cuda_device_props *props,
                                              const ft_cuda_groupwise_args *p)
{
    size_t tiles = (p->m + 127) / 128 * (((size_t) groupwise_shape_of(p).panels + 3) / 4);
    if (p->m <= 16 || !ft_cuda_groupwise_int8_tile_fits(FT_CUDA_GROUPWISE_INT8_N128_M32, props, p))
        return FT_CUDA_GROUPWISE_INT8_N32_M16;
    return tiles >= (size_t) props->sm_count &&
                   ft_cuda_groupwise_int8_tile_fits(FT_CUDA_GROUPWISE_INT8_N128_M128, props, p)
               ? FT_CUDA_GROUPWISE_INT8_N128_M128
               : FT_CUDA_GROUPWISE_INT8_N128_M32;
}

/* Time in ns of groupwise_int8_small_m.cu for more than 16 tokens, measured on an H200. */
static double small_m_ns(const ft_cuda_device_props *props, const ft_cuda_groupwise_args *p)
{
    double tiles = (double) groupwise_shape_of(p).panels * (double) ((p->m + 31) / 32) *
                   (double) (p->k / GROUPWISE_TILE_K);
    return 5000.0 + 297.0 * tiles / props->sm_count;
}

/* The kernels for few tokens read weights fastest; the others compute fastest. */
ft_cuda_groupwise_int8_tile ft_cuda_groupwise_int8_select(const ft_cuda_device_props *props,
                                                          const ft_cuda_groupwise_args *p)
{
    bool small_m = ft_cuda_groupwise_int8_small_m_supports(props, p);
    double wgmma_ns;
    if (ft_cuda_groupwise_int8_resident_supports(props, p))
        return FT_CUDA_GROUPWISE_INT8_RESIDENT;
    if (small_m && (p->m <= 16 || !ft_cuda_groupwise_int8_wgmma_supports(props, p)))
        return FT_CUDA_GROUPWISE_INT8_SMALL_M;
    if (!ft_cuda_groupwise_int8_wgmma_supports(props, p))
        return select_mma(props, p);
    ft_cuda_groupwise_int8_tile wgmma = ft_cuda_groupwise_int8_wgmma_select(props, p, &wgmma_ns);
    return small_m && small_m_ns(props, p) < wgmma_ns ? FT_CUDA_GROUPWISE_INT8_SMALL_M : wgmma;
}

int ft_cuda_groupwise_int8(ft_cuda_groupwise_int8_tile tile, const ft_cuda_device_props *props,
                           void *stream, const ft_cuda_groupwise_args *p)
{
    if (tile == FT_CUDA_GROUPWISE_INT8_RESIDENT)
        return ft_cuda_groupwise_int8_resident(props, stream, p);
    if (tile == FT_CUDA_GROUPWISE_INT8_SMALL_M)
        return ft_cuda_groupwise_int8_small_m(props, stream, p);
    if (tile >= FT_CUDA_GROUPWISE_INT8_WGMMA_N64_M32)
        return ft_cuda_groupwise_int8_wgmma(tile, props, stream, p);
    return p->bits == 4 ? launch_tile<4>(tile, props, stream, p)
                        : launch_tile<8>(tile, props, stream, p);
}
