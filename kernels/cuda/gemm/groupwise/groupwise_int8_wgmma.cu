/*
 * groupwise_int8_wgmma.cu - INT8 GEMM with group-wise quantized weights on sm_90a: groups of 32, 64
 * or 128, no zero points of weights.
 *
 * Each group costs five instructions for each result: the sum is corrected for the zero point of x,
 * converted to float and scaled. With groups of 32 the tensor cores take a fifth of that time. So
 * everything else stays out of the way: one kernel quantizes x and stores its zero points as
 * floats. In the other a warpgroup has 64 rows of weights, which it unpacks into registers, and two
 * halves of the tokens, whose x is in shared memory: while wgmma multiplies one half, the sums of
 * the other one are scaled. Between wgmma there are no branches, which would serialize them.
 *
 * Accumulators begin at the bits of a float, INT8_FLOAT_MAGIC. Sums are below 2^22, so they and
 * their corrections are exact as floats of that magnitude.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/groupwise/groupwise_int8_wgmma.cuh"
#include "kernels/cuda/gemm/groupwise/groupwise_tiles.h"
#include "kernels/cuda/ptx/tma.cuh"
#include "kernels/cuda/ptx/wgmma.cuh"

#ifdef FT_HAS_WGMMA

/* ---- Weights -------------------------------------------------------------------------------- */

/* The first of a lane's two rows in its panel: MMA rows g and g + 8 are adjacent rows of weights.
 */
__device__ __forceinline__ int own_row()
{
    return (int) threadIdx.x / 32 % 2 * 16 + (int) threadIdx.x % 32 / 4 * 2;
}

/* Four signed bytes: nibbles less 8, or bytes less 128. */
template <int bits> __device__ __forceinline__ uint32_t to_signed(uint32_t codes)
{
    return bits == 8 ? codes ^ 0x80808080
                     : (((codes & 0x0f0f0f0f) | 0x80808080) - 0x08080808) ^ 0x80808080;
}

/* A group of the lane's rows: the A operands of its steps, scales, and the sums of its weights. */
template <class CONFIG> struct weight_group {
    uint32_t a[CONFIG::steps][4];
    float scale[2], sum[2];

    __device__ __forceinline__ void load(const char *panel, int group)
    {
        int row = own_row(), t = (int) threadIdx.x % 4;
        int32_t sums[2] = { 0, 0 };
        const char *own = panel + group * CONFIG::steps * CONFIG::step_bytes + t * 128 +
                          (row / 4 ^ t * 2) * 16 + row % 4 * 4;
#pragma unroll
        for (int i = 0; i < CONFIG::steps; i++) {
            uint2 first = *(const uint2 *) (own + i * CONFIG::step_bytes);
            uint2 second = make_uint2(first.x >> 4, first.y >> 4);
            if constexpr (CONFIG::bits == 8)
                second = *(const uint2 *) (own + i * CONFIG::step_bytes + GROUPWISE_WARP_BYTES);
            a[i][0] = to_signed<CONFIG::bits>(first.x);
            a[i][1] = to_signed<CONFIG::bits>(first.y);
            a[i][2] = to_signed<CONFIG::bits>(second.x);
            a[i][3] = to_signed<CONFIG::bits>(second.y);
#pragma unroll
            for (int j = 0; j < 4; j++)
                sums[j % 2] = __dp4a((int) a[i][j], 0x01010101, sums[j % 2]);
        }
        float2 both =
            __half22float2(*(const __half2 *) (panel + CONFIG::panel + group * 64 + row * 2));
        scale[0] = both.x;
        scale[1] = both.y;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            sums[i] += __shfl_xor_sync(~0u, sums[i], 1);
            sums[i] += __shfl_xor_sync(~0u, sums[i], 2);
            sum[i] = (float) sums[i];
        }
    }
    /*
     * Compiler fence after the wgmma has completed: until then it reads these registers behind the
     * compiler's back.
     */
    __device__ __forceinline__ void fence()
    {
#pragma unroll
        for (int i = 0; i < CONFIG::steps * 4; i++)
            asm volatile("" : "+r"(a[i / 4][i % 4]));
    }
};

/* ---- Sums of one half of the tokens --------------------------------------------------------- */

template <class CONFIG> struct half_tile {
    int32_t products[CONFIG::half / 2];
    float total[CONFIG::half / 2];

    __device__ __forceinline__ half_tile()
    {
#pragma unroll
        for (int i = 0; i < CONFIG::half / 2; i++) {
            products[i] = INT8_FLOAT_MAGIC;
            total[i] = 0.0f;
        }
    }
    /* Issues the wgmma of a group without waiting for them. */
    __device__ __forceinline__ void multiply(const weight_group<CONFIG> &w, uint64_t tokens)
    {
        ft_wgmma_fence();
#pragma unroll
        for (int i = 0; i < CONFIG::steps; i++)
            ft_wgmma_i8_register_a<CONFIG::half>(products, w.a[i], tokens + 2 * i);
        ft_wgmma_commit();
    }
    /* Scales the sums of a group into the totals; x_scales: of the lane's first two tokens. */
    __device__ __forceinline__ void add_group(const weight_group<CONFIG> &w, const char *x_scales)
    {
        ft_wgmma_fence_acc(products);
#pragma unroll
        for (int j = 0; j < CONFIG::half / 8; j++) {
            float4 x = *(const float4 *) (x_scales + j * 64);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int at = 4 * j + i, row = i / 2;
                float exact =
                    fmaf(i % 2 == 0 ? x.y : x.w, w.sum[row], __int_as_float(products[at]));
                exact = int8_sum_to_float(__float_as_int(exact), true);
                total[at] = fmaf(exact, w.scale[row] * (i % 2 == 0 ? x.x : x.z), total[at]);
                products[at] = INT8_FLOAT_MAGIC;
            }
        }
    }
    /* To shared memory, [token][row]. */
    __device__ __forceinline__ void store(float *to) const
    {
#pragma unroll
        for (int j = 0; j < CONFIG::half / 8; j++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                *(float2 *) (to + (8 * j + i) * CONFIG::pitch) =
                    make_float2(total[4 * j + i], total[4 * j + i + 2]);
    }
};

/* ---- Mainloop ------------------------------------------------------------------------------- */

/* One k tile; no wgmma is left pending. */
template <class CONFIG>
__device__ __forceinline__ void multiply_k_tile(half_tile<CONFIG> &even, half_tile<CONFIG> &odd,
                                                const char *stage, const char *panel)
{
    weight_group<CONFIG> w[2];
    uint64_t tokens = ft_wgmma_descriptor(stage);
    ft_wgmma_fence_acc(even.products); /* or the compiler resets them between two wgmma */
    ft_wgmma_fence_acc(odd.products);
    const char *x_scales = stage + CONFIG::scales_at + (int) threadIdx.x % 4 * 16;
#pragma unroll
    for (int group = 0; group < CONFIG::groups; group++, x_scales += CONFIG::tokens * 8) {
        weight_group<CONFIG> &own = w[group % 2];
        uint64_t from = tokens + 2 * group * CONFIG::steps;
        own.load(panel, group);
        even.multiply(own, from);
        if (group > 0) {
            ft_wgmma_wait<1>();
            w[(group + 1) % 2].fence();
            odd.add_group(w[(group + 1) % 2], x_scales - CONFIG::tokens * 8 + CONFIG::half * 8);
        }
        odd.multiply(own, from + CONFIG::half / 8 * 64);
        ft_wgmma_wait<1>();
        even.add_group(own, x_scales);
    }
    ft_wgmma_wait<0>();
    w[(CONFIG::groups + 1) % 2].fence();
    odd.add_group(w[(CONFIG::groups + 1) % 2], x_scales - CONFIG::tokens * 8 + CONFIG::half * 8);
}

/* Results from shared memory, four rows of a token per thread and turn. */
template <class CONFIG>
__device__ __forceinline__ void store_tile(const ft_cuda_groupwise_args &p,
                                           const groupwise_shape &shape, const float *from,
                                           int first_token, int first_panel)
{
    constexpr int quads = CONFIG::rows / 4;
#pragma unroll 1
    for (int i = (int) threadIdx.x; i < CONFIG::tokens * quads; i += CONFIG::threads) {
        int token = i / quads, row = i % quads * 4;
        int panel = first_panel + row / GROUPWISE_PANEL_ROWS;
        float4 sum = *(const float4 *) (from + token * CONFIG::pitch + row);
        float value[4] = { sum.x, sum.y, sum.z, sum.w };
        if ((size_t) (first_token + token) >= p.m || panel >= shape.panels)
            continue;
        const ft_cuda_groupwise_linear &linear = p.linear[groupwise_linear_of(shape, panel)];
        groupwise_store<4>(p, linear, (size_t) (first_token + token),
                           (size_t) panel * GROUPWISE_PANEL_ROWS + row % GROUPWISE_PANEL_ROWS,
                           value);
    }
}
#endif

/* grid = (tiles of tokens, tiles of panels) */
template <class CONFIG>
static __global__ void __launch_bounds__(CONFIG::threads, CONFIG::blocks_per_sm)
    int8_wgmma_kernel(const __grid_constant__ ft_cuda_groupwise_args p,
                      const __grid_constant__ int8_wgmma_params shape)
{
#ifdef FT_HAS_WGMMA
    extern __shared__ __align__(1024) char shared[];
    constexpr int distance = CONFIG::stages - 1; /* k tiles that are loaded ahead */
    int first_token = (int) blockIdx.x * CONFIG::tokens;
    int first_panel = (int) blockIdx.y * CONFIG::panels;
    half_tile<CONFIG> even, odd;
    for (int i = 0; i < distance; i++) /* weights do not depend on the predecessor */
        if (i * GROUPWISE_TILE_K < shape.all.k)
            int8_copy_weights<CONFIG>(shared + i * CONFIG::stage, p, shape, first_panel,
                                      i * GROUPWISE_TILE_K);
    ft_pdl_wait();
    for (int i = 0; i < distance; i++) {
        if (i * GROUPWISE_TILE_K < shape.all.k)
            int8_copy_tokens<CONFIG>(shared + i * CONFIG::stage, p, shape, first_token,
                                     i * GROUPWISE_TILE_K);
        ft_cp_async_commit();
    }
    ft_pdl_launch_dependents();
    int read_stage = 0, write_stage = distance;
    for (int column = 0; column < shape.all.k; column += GROUPWISE_TILE_K) {
        ft_cp_async_wait<distance - 1>();
        ft_fence_proxy_async();
        __syncthreads(); /* this stage has arrived, and the last one has been multiplied */
        int next = column + distance * GROUPWISE_TILE_K;
        if (next < shape.all.k) {
            char *stage = shared + write_stage * CONFIG::stage;
            int8_copy_weights<CONFIG>(stage, p, shape, first_panel, next);
            int8_copy_tokens<CONFIG>(stage, p, shape, first_token, next);
        }
        ft_cp_async_commit();
        const char *stage = shared + read_stage * CONFIG::stage;
        multiply_k_tile<CONFIG>(even, odd, stage,
                                stage + CONFIG::panels_at + (int) threadIdx.x / 64 * CONFIG::own);
        read_stage = read_stage + 1 == CONFIG::stages ? 0 : read_stage + 1;
        write_stage = write_stage + 1 == CONFIG::stages ? 0 : write_stage + 1;
    }
    ft_cp_async_wait<0>();
    __syncthreads();
    float *results = (float *) shared + 2 * ((int) threadIdx.x % 4) * CONFIG::pitch +
                     (int) threadIdx.x / 64 * GROUPWISE_PANEL_ROWS + own_row();
    even.store(results);
    odd.store(results + CONFIG::half * CONFIG::pitch);
    __syncthreads();
    store_tile<CONFIG>(p, shape.all, (const float *) shared, first_token, first_panel);
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* int8 values, and scales for each 32 of them. */
size_t ft_cuda_groupwise_int8_wgmma_scratch(size_t m, size_t k)
{
    return round_up(m * round_up(k, GROUPWISE_STEP_K), 256) +
           sizeof(float2) * (k / GROUPWISE_STEP_K + 1) * round_up(m, 128);
}

static int8_wgmma_params params_of(const ft_cuda_groupwise_args *p)
{
    int8_wgmma_params s = {};
    s.all = groupwise_shape_of(p);
    s.padded_m = (int) round_up(p->m, 128);
    s.quantized = (int8_t *) p->scratch;
    s.scale = (float2 *) ((char *) p->scratch + round_up(p->m * p->k, 256));
    return s;
}

template <class CONFIG>
static int launch(const ft_cuda_device_props *props, void *stream, const ft_cuda_groupwise_args *p)
{
    enum { WARPS = 8 };
    int8_wgmma_params shape = params_of(p);
    dim3 k_tiles(ft_ceil_div(p->k, GROUPWISE_TILE_K), ft_ceil_div(p->m, WARPS));
    dim3 grid(ft_ceil_div(p->m, CONFIG::tokens),
              ft_ceil_div((size_t) shape.all.panels, CONFIG::panels));
    int status = (int) cudaFuncSetAttribute(
        int8_wgmma_kernel<CONFIG>, cudaFuncAttributeMaxDynamicSharedMemorySize, CONFIG::shared);
    if (status == 0)
        status = ft_launch(int8_quantize_k_tiles_kernel<CONFIG::bits>, k_tiles, dim3(32, WARPS), 0,
                           stream, props->has_pdl, 1, *p, shape);
    return status != 0 ? status
                       : ft_launch(int8_wgmma_kernel<CONFIG>, grid, CONFIG::threads, CONFIG::shared,
                                   stream, props->has_pdl, 1, *p, shape);
}

template <int bits, int GROUPS>
static int launch_tile(ft_cuda_groupwise_int8_tile tile, const ft_cuda_device_props *props,
                       void *stream, const ft_cuda_groupwise_args *p)
{
    if (tile == FT_CUDA_GROUPWISE_INT8_WGMMA_N64_M32)
        return launch<int8_wgmma_config<bits, 1, 32, 7, GROUPS>>(props, stream, p);
    return tile == FT_CUDA_GROUPWISE_INT8_WGMMA_N64_M64
               ? launch<int8_wgmma_config<bits, 1, 64, 5, GROUPS>>(props, stream, p)
               : launch<int8_wgmma_config<bits, 2, 128, 5, GROUPS>>(props, stream, p);
}

template <int bits>
static int launch_groups(ft_cuda_groupwise_int8_tile tile, const ft_cuda_device_props *props,
                         void *stream, const ft_cuda_groupwise_args *p)
{
    return p->group == 32   ? launch_tile<bits, 4>(tile, props, stream, p)
           : p->group == 64 ? launch_tile<bits, 2>(tile, props, stream, p)
                            : launch_tile<bits, 1>(tile, props, stream, p);
}

/*
 * Time of a k tile in ns, alone on an SM and with a second thread block, from times of 64 to 2048
 * tokens on an H200: a part for each group, and one for the rest.
 */
typedef struct tile_time {
    ft_cuda_groupwise_int8_tile tile;
    size_t rows, tokens, blocks_per_sm;
    double alone, alone_group, shared, shared_group;
} tile_time;

static const tile_time times[] = {
    { FT_CUDA_GROUPWISE_INT8_WGMMA_N64_M32, 64, 32, 2, 440, 72, 710, 125 },
    { FT_CUDA_GROUPWISE_INT8_WGMMA_N64_M64, 64, 64, 2, 600, 130, 900, 220 },
    { FT_CUDA_GROUPWISE_INT8_WGMMA_N128_M128, 128, 128, 1, 1150, 510, 1150, 510 },
};

static double ns_of(const tile_time *t, const ft_cuda_device_props *props,
                    const ft_cuda_groupwise_args *p)
{
    size_t rows = (size_t) groupwise_shape_of(p).panels * GROUPWISE_PANEL_ROWS;
    size_t blocks = ft_ceil_div(p->m, t->tokens) * ft_ceil_div(rows, t->rows);
    bool alone = blocks <= (size_t) props->sm_count;
    size_t waves = ft_ceil_div(blocks, t->blocks_per_sm * (size_t) props->sm_count);
    double groups = (double) (GROUPWISE_TILE_K / p->group);
    double k_tile =
        alone ? t->alone + groups * t->alone_group : t->shared + groups * t->shared_group;
    return 8000.0 + (double) (waves * (p->k / GROUPWISE_TILE_K)) * k_tile;
}

ft_cuda_groupwise_int8_tile ft_cuda_groupwise_int8_wgmma_select(const ft_cuda_device_props *props,
                                                                const ft_cuda_groupwise_args *p,
                                                                double *ns)
{
    const tile_time *best = &times[0];
    for (const tile_time &t : times)
        if (ns_of(&t, props, p) < ns_of(best, props, p))
            best = &t;
    *ns = ns_of(best, props, p);
    return best->tile;
}

bool ft_cuda_groupwise_int8_wgmma_supports(const ft_cuda_device_props *props,
                                           const ft_cuda_groupwise_args *p)
{
    return props->has_wgmma && (p->group == 32 || p->group == 64 || p->group == 128) &&
           p->k % GROUPWISE_TILE_K == 0 && p->linear[0].zero == NULL &&
           props->smem_bytes >= (size_t) int8_wgmma_config<8, 2, 128, 5, 4>::shared &&
           p->scratch_bytes >= ft_cuda_groupwise_int8_wgmma_scratch(p->m, p->k);
}

int ft_cuda_groupwise_int8_wgmma(ft_cuda_groupwise_int8_tile tile,
                                 const ft_cuda_device_props *props, void *stream,
                                 const ft_cuda_groupwise_args *p)
{
    return p->bits == 4 ? launch_groups<4>(tile, props, stream, p)
                        : launch_groups<8>(tile, props, stream, p);
}
