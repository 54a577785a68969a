/*
 * decode_f16.cu - f16 and bf16 GEMVs of one row with the norm before and the gate after them.
 *
 * wgmma_f16_gemm.cu needs a launch for each shape of a norm's linears, and kernels for the norm and
 * the gate. Here a thread block normalizes the row itself while its pipelines fill, has tiles of
 * all linears, and computes the splits of a tile itself: each of its warpgroups has a pipeline and
 * half of the splits, or a tile of its own. The wgmma instructions and the order of the splits are
 * those of wgmma_f16_gemm.cu.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/f16/decode_f16.cuh"
#include "kernels/cuda/gemm/f16/wgmma_f16_gemm.h"
#include "kernels/cuda/ptx/named_barrier.cuh"
#include "kernels/cuda/ptx/warp.cuh"

#ifdef FT_HAS_WGMMA

/* One thread, before all others start. */
__device__ __forceinline__ void init_pipelines(decode_f16_smem &s, const decode_f16_params &a)
{
    for (int warpgroup = 0; warpgroup < DECODE_F16_WARPGROUPS; warpgroup++)
        for (int i = 0; i < a.stages; i++) {
            ft_mbarrier_init(&s.full[warpgroup][i], 1);
            ft_mbarrier_init(&s.empty[warpgroup][i], 4);
        }
    ft_mbarrier_fence_init();
}

/* sum = k tiles begin .. end - 1 of a tile. */
template <bool bf16>
__device__ __forceinline__ void accumulate(float (&sum)[4], decode_f16_smem &s, const char *stages,
                                           const char *x, const decode_f16_params &a, int warpgroup,
                                           ft_pipeline_state &state, int begin, int end)
{
    int previous = -1;
    for (int k_tile = begin; k_tile < end; k_tile++) {
        uint64_t w = ft_wgmma_descriptor(stages + state.stage_index * DECODE_F16_STAGE);
        uint64_t row = ft_wgmma_descriptor(x + k_tile * DECODE_F16_X_STRIDE);
        ft_mbarrier_wait(&s.full[warpgroup][state.stage_index], state.phase);
        ft_wgmma_fence();
#pragma unroll
        for (int k = 0; k < DECODE_F16_K / 16; k++)
            ft_wgmma_f16<8, bf16>(sum, w + 2 * k, row + 2 * k, k > 0 || k_tile > begin);
        ft_wgmma_commit();
        ft_wgmma_wait<1>();
        if (previous >= 0 && threadIdx.x % 32 == 0)
            ft_mbarrier_arrive(&s.empty[warpgroup][previous]);
        previous = state.stage_index;
        state.advance(a.stages);
    }
    ft_wgmma_wait<0>();
    if (threadIdx.x % 32 == 0)
        ft_mbarrier_arrive(&s.empty[warpgroup][previous]);
    ft_wgmma_fence_acc(sum);
}

/* The norm weights of a thread; they do not depend on the predecessor. */
__device__ __forceinline__ void load_norm_weights(float4 (&weight)[DECODE_F16_VECTORS][2],
                                                  const decode_f16_params &a)
{
#pragma unroll
    for (int i = 0; i < DECODE_F16_VECTORS; i++) {
        int at = (i * DECODE_F16_CONSUMERS + (int) threadIdx.x) * FT_NORM_VECTOR;
        if (at >= a.k)
            continue;
        weight[i][0] = *(const float4 *) (a.norm.weight + at);
        weight[i][1] = *(const float4 *) (a.norm.weight + at + 4);
    }
}

/* Not inlined: a switch over all activations is long. */
__device__ __noinline__ float activate_any(ft_activation activation, float value)
{
    return ft_activate(activation, value);
}

/* Round to dtype and back, as through memory. */
template <ft_dtype dtype> __device__ __forceinline__ float rounded(float value)
{
    ft_raw_vec<1> bits;
    bits.word[0] = ft_pack_f16<dtype>(value);
    ft_unpack_as<dtype, 1>(&value, bits);
    return value;
}

__device__ __forceinline__ float biased(const float *bias, int row, float value)
{
    return bias != NULL ? value + bias[row] : value;
}

/*
 * Threads 0 .. 127 finish a unit: the rows of both tiles, or of the one tile whose splits or gate
 * the halves have.
 */
template <ft_dtype dtype, bool gates>
__device__ __forceinline__ void
finish_unit(const float (&sums)[DECODE_F16_MAX_SPLITS][DECODE_F16_ROWS], const decode_f16_params &a,
            int unit)
{
    int lane_row = (int) threadIdx.x % DECODE_F16_ROWS, part = (int) threadIdx.x / DECODE_F16_ROWS;
    decode_f16_half<gates> half(a, unit, gates ? 0 : part);
    int row = half.row + lane_row;
    if (row >= half.n || part >= (gates || half.splits > 1 ? 1 : 2))
        return;
    float value = sums[part][lane_row];
    for (int i = 1; i < half.splits; i++)
        value += sums[i][lane_row];
    value = biased(decode_f16_of(a.bias, half.linear), row, value);
    if (gates) {
        float factor = rounded<dtype>(biased(a.bias[1], row, sums[1][lane_row]));
        value = rounded<dtype>(value);
        value = (a.gate.activation == FT_ACT_SILU ? ft_activate(FT_ACT_SILU, value)
                                                  : activate_any(a.gate.activation, value)) *
                factor;
    }
    ft_store_as<dtype, 1>(gates ? a.gate.y : decode_f16_of(a.y, half.linear), row, &value);
}

template <ft_dtype dtype, bool gates>
__device__ __forceinline__ void consume(decode_f16_smem &s, const char *pipelines, const char *x,
                                        const decode_f16_params &a, int warpgroup)
{
    const char *stages = pipelines + warpgroup * a.stages * DECODE_F16_STAGE;
    int lane = (int) threadIdx.x % 32, row = (int) threadIdx.x % 128 / 32 * 16 + lane / 4;
    ft_pipeline_state state = { 0, 0 };
    int parity = 0;
    for (int unit = blockIdx.x; unit < a.units; unit += gridDim.x, parity ^= 1) {
        decode_f16_half<gates> half(a, unit, warpgroup);
        for (int split = half.split; half.any() && split < half.end; split++) {
            float sum[4], *to = s.sums[parity][half.slot + split - half.split];
            accumulate<dtype == FT_BF16>(sum, s, stages, x, a, warpgroup, state,
                                         half.begin(a, split), half.begin(a, split + 1));
            if (lane % 4 == 0) {
                to[row] = sum[0];
                to[row + 8] = sum[2];
            }
        }
        ft_named_barrier_sync(1, DECODE_F16_CONSUMERS);
        finish_unit<dtype, gates>(s.sums[parity], a, unit);
    }
}

#endif

/* grid: at most a thread block per unit; blockDim.x = DECODE_F16_THREADS. */
template <ft_dtype dtype, bool gates>
static __global__ void __launch_bounds__(DECODE_F16_THREADS, 1)
    decode_f16_kernel(const __grid_constant__ decode_f16_params a)
{
#ifdef FT_HAS_WGMMA
    extern __shared__ __align__(1024) char shared[];
    decode_f16_smem &s = *(decode_f16_smem *) shared;
    char *pipelines = shared + DECODE_F16_PIPELINES,
         *x = pipelines + DECODE_F16_WARPGROUPS * a.stages * DECODE_F16_STAGE;
    int warp = ft_warp_id();
    bool produces = warp >= DECODE_F16_CONSUMERS / 32;
    if (threadIdx.x == 0)
        init_pipelines(s, a);
    __syncthreads();
    int warpgroup = produces ? warp - DECODE_F16_CONSUMERS / 32 : warp / 4;
    decode_f16_producer<gates> producer(s, pipelines, a, warpgroup);
    float4 weight[DECODE_F16_VECTORS][2] = {};
    if (produces && threadIdx.x % 32 == 0)
        for (int i = 0; i < a.stages && producer.any(a); i++)
            producer.request(a);
    if (!produces)
        load_norm_weights(weight, a);
    __syncwarp();
    ft_pdl_wait();
    decode_f16_norm<dtype>(x, s, a, weight);
    __syncthreads();
    ft_pdl_launch_dependents();
    if (!produces)
        consume<dtype, gates>(s, pipelines, x, a, warpgroup);
    else if (threadIdx.x % 32 == 0)
        while (producer.any(a))
            producer.request(a);
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

static bool supports_gemv(const ft_cuda_device_props *props, const ft_cuda_float_gemm_args *p,
                          const ft_cuda_float_gemm_args *first)
{
    return p->m == 1 && p->k == first->k && p->x_dtype == first->x_dtype &&
           p->y_dtype == p->x_dtype && p->activation == FT_ACT_NONE && p->n > 0 &&
           ft_cuda_f16_wgmma_supports(props, p);
}

/*
 * A gate's unit is 128 weight rows. Where the last wave of units leaves many SMs idle, separate
 * kernels are faster (22016 x 4096).
 */
static bool fills_waves(const ft_cuda_device_props *props, size_t units)
{
    size_t sms = (size_t) props->sm_count;
    return units <= sms || 4 * units >= 3 * ft_ceil_div(units, sms) * sms;
}

/* Bytes of shared memory besides the pipelines. */
static size_t fixed_smem(size_t k)
{
    return DECODE_F16_PIPELINES + k / DECODE_F16_K * DECODE_F16_X_STRIDE;
}

extern "C" bool ft_cuda_decode_f16_supports(const ft_cuda_device_props *props,
                                            const ft_cuda_float_gemm_args *p, int count,
                                            const ft_decode_f16_norm *norm,
                                            const ft_decode_f16_gate *gate)
{
    bool supported = count >= 1 && count <= FT_CUDA_MAX_FUSED && p->k % FT_NORM_PARTIALS == 0 &&
                     p->k <= DECODE_F16_MAX_K && (norm->residual == NULL) == (norm->sum == NULL) &&
                     ft_is_aligned(norm->x, 16);
    for (int i = 0; supported && i < count; i++)
        supported = supports_gemv(props, &p[i], p);
    if (supported && gate != NULL)
        supported = count == 2 && p[0].n == p[1].n && ft_cuda_f16_wgmma_splits(p->n, p->k) == 1 &&
                    fills_waves(props, ft_ceil_div(p->n, DECODE_F16_ROWS));
    return supported &&
           fixed_smem(p->k) + 4 * DECODE_F16_WARPGROUPS * DECODE_F16_STAGE <= props->smem_bytes;
}

static int params_init(decode_f16_params *a, const ft_cuda_float_gemm_args *p, int count,
                       const ft_decode_f16_norm *norm, const ft_decode_f16_gate *gate)
{
    int status = 0;
    *a = {};
    a->k = (int) p->k;
    a->k_tiles = a->k / DECODE_F16_K;
    a->norm = *norm;
    if (gate != NULL)
        a->gate = *gate;
    for (int i = 0; i < FT_CUDA_MAX_FUSED && status == 0; i++) {
        if (i < count) {
            int tiles = (int) ft_ceil_div(p[i].n, DECODE_F16_ROWS);
            status = ft_tma_map_2d(&a->w[i], p[i].w, p[i].n, 2 * p[i].k, DECODE_F16_ROWS);
            a->bias[i] = p[i].bias;
            a->y[i] = p[i].y;
            a->n[i] = (int) p[i].n;
            a->splits[i] = ft_cuda_f16_wgmma_splits(p[i].n, p[i].k);
            a->units += gate != NULL       ? (i == 0 ? tiles : 0)
                        : a->splits[i] > 1 ? tiles
                                           : (tiles + 1) / 2;
        }
        a->end[i] = a->units;
    }
    return status;
}

/* Stages of a warpgroup: as many as fit. */
static int stages_of(const ft_cuda_device_props *props, const decode_f16_params *a)
{
    size_t limit = props->smem_bytes - fixed_smem((size_t) a->k);
    int stages = (int) (limit / (DECODE_F16_WARPGROUPS * DECODE_F16_STAGE));
    return stages < DECODE_F16_MAX_STAGES ? stages : DECODE_F16_MAX_STAGES;
}

template <ft_dtype dtype, bool gates>
static int launch(const ft_cuda_device_props *props, void *stream, const decode_f16_params &a)
{
    auto *kernel = decode_f16_kernel<dtype, gates>;
    size_t bytes =
        fixed_smem((size_t) a.k) + (size_t) (a.stages * DECODE_F16_WARPGROUPS) * DECODE_F16_STAGE;
    int blocks = a.units < props->sm_count ? a.units : props->sm_count;
    cudaError_t status =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) bytes);
    if (status != cudaSuccess)
        return (int) status;
    return ft_launch(kernel, dim3((unsigned) blocks), DECODE_F16_THREADS, bytes, stream,
                     props->has_pdl, 1, a);
}

extern "C" int ft_cuda_decode_f16(const ft_cuda_device_props *props, void *stream,
                                  const ft_cuda_float_gemm_args *p, int count,
                                  const ft_decode_f16_norm *norm, const ft_decode_f16_gate *gate)
{
    decode_f16_params a;
    if (!ft_cuda_decode_f16_supports(props, p, count, norm, gate))
        return (int) cudaErrorNotSupported;
    int status = params_init(&a, p, count, norm, gate);
    if (status != 0)
        return status;
    a.stages = stages_of(props, &a);
    if (p->x_dtype == FT_F16)
        return gate != NULL ? launch<FT_F16, true>(props, stream, a)
                            : launch<FT_F16, false>(props, stream, a);
    return gate != NULL ? launch<FT_BF16, true>(props, stream, a)
                        : launch<FT_BF16, false>(props, stream, a);
}
