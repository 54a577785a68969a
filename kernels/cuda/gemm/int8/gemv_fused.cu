/*
 * gemv_fused.cu - INT8 GEMV of one row that quantizes the row itself, and the gate of two linears.
 *
 * In a decode step of one sequence each kernel between two GEMVs leaves DRAM idle for 3 to 4 us:
 * the GEMV's pipelines are full long before the row arrives. Here the thread blocks normalize and
 * quantize the row themselves. The gate of a row needs the amax of all its products before the
 * first can be quantized, so the thread blocks of the gate's GEMV write F32 products and their
 * amax, and those of the next GEMV quantize them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/int8/gemv_input.cuh"

enum { STAGES = 4 }; /* per warp: with 6 or 8 a decode step of Llama 2 7B takes 1 or 2 % longer */

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900

/*
 * The epilogue warp with a gate: half of the lanes have columns of the first linear, the others
 * those of the second.
 */
__device__ __forceinline__ void gate_epilogue(gemv_smem &s, const ft_cuda_gemm_args &p,
                                              const gemv_params &shape, const ft_gemv_gate &gate,
                                              float row_scale, unsigned lane)
{
    unsigned half = lane / GEMV_TILE_ROWS, lane_row = lane % GEMV_TILE_ROWS;
    float amax = 0.0f;
    int tile_count = 0;
    gemv_column column;
    gemv_tiles<true> tiles(shape);
    column.start(p, tiles.index + (int) half * tiles.count, shape.row_tiles, lane);
    for (; tiles.any(); tiles.index += gridDim.x, tile_count += 2) {
        int first = tile_count % GEMV_TILES_IN_SMEM;
        unsigned phase = tile_count / GEMV_TILES_IN_SMEM & 1;
        gemv_column next;
        next.start(p, tiles.index + (int) gridDim.x + (int) half * tiles.count, shape.row_tiles,
                   lane);
        ft_mbarrier_wait(&s.full_acc[first], phase);
        ft_mbarrier_wait(&s.full_acc[first + 1], phase);
        int32_t *own = &s.sums[first + half][0][lane_row], sum = *own;
        *own = 0;
        __syncwarp();
        if (lane < 2)
            ft_mbarrier_arrive(&s.empty[first + lane]);
        float value = ft_dequantize(sum, column.scale * row_scale, column.bias);
        value = __half2float(__float2half_rn(value));
        float factor = __shfl_down_sync(0xffffffff, value, GEMV_TILE_ROWS);
        if (half == 0) {
            value = (gate.activation == FT_ACT_SILU ? ft_activate(FT_ACT_SILU, value)
                                                    : ft_activate_any(gate.activation, value)) *
                    factor;
            gate.products[column.col] = value;
            amax = ft_amax(amax, value);
        }
        column = next;
    }
    amax = ft_warp_amax(amax);
    if (lane == 0)
        gate.amax[blockIdx.x] = amax;
}

#endif

/* grid = blocks_of(); blockDim.x = GEMV_THREADS. */
template <ft_gemv_source source, int max_k, bool gates>
static __global__ void __launch_bounds__(GEMV_THREADS, 2)
    gemv_fused_kernel(const __grid_constant__ ft_cuda_gemm_args p,
                      const __grid_constant__ gemv_params shape,
                      const __grid_constant__ ft_gemv_input input,
                      const __grid_constant__ ft_gemv_gate gate)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) char shared[];
    __shared__ gemv_input_smem input_smem;
    gemv_smem &s = *(gemv_smem *) shared;
    char *pipelines = shared + GEMV_PIPELINE_OFFSET,
         *x = pipelines + GEMV_WARPS * STAGES * GEMV_STAGE_BYTES;
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    gemv_pipeline<STAGES, gates> pipeline(s, pipelines, p, shape, (int) warp);
    gemv_column column;
    gemv_row<source, max_k> row;
    if (warp == GEMV_WARPS) {
        gemv_init_epilogue(s, lane);
        if (!gates)
            column.start(p, blockIdx.x, shape.row_tiles, lane);
    } else {
        pipeline.start();
    }
    __syncwarp();
    row.prefetch(input, (int) p.k);
    ft_pdl_wait();
    float scale = ft_scale_from_amax(row.load(input, (int) p.k, input_smem));
    if (warp < GEMV_WARPS)
        row.store(x, (int) p.k, ft_inverse_scale(scale));
    __syncthreads();
    ft_pdl_launch_dependents();
    if (warp < GEMV_WARPS) {
        gemv_mainloop(s, x, pipeline, p, shape, warp, lane);
    } else if constexpr (gates) {
        gate_epilogue(s, p, shape, gate, scale, lane);
    } else {
        const gemv_row_scales row_scales = { { scale } };
        gemv_epilogue(s, column, row_scales, p, shape, lane);
    }
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

static size_t max_k_of(ft_gemv_source source)
{
    return source == FT_GEMV_NORM     ? GEMV_NORM_MAX_K
           : source == FT_GEMV_VALUES ? GEMV_VALUES_MAX_K
                                      : GEMV_PRODUCTS_MAX_K;
}

/* As many thread blocks as have an equal number of row tiles, or of pairs, but the last one. */
static unsigned blocks_of(const ft_cuda_device_props *props, const ft_cuda_gemm_args *p, bool gates)
{
    unsigned units = (unsigned) ((p->n + 31) / 32 * 2) / (gates ? 2 : 1);
    unsigned units_per_block = ft_ceil_div(units, (unsigned) props->sm_count);
    return ft_ceil_div(units, units_per_block);
}

extern "C" int ft_cuda_gemv_gate_parts(const ft_cuda_device_props *props,
                                       const ft_cuda_gemm_args *p)
{
    return (int) blocks_of(props, p, true);
}

static bool supports_input(const ft_cuda_gemm_args *p, const ft_gemv_input *input)
{
    return p->k % FT_NORM_PARTIALS == 0 && p->k <= max_k_of(input->source) &&
           ft_is_aligned(input->x, 16) &&
           (input->source != FT_GEMV_PRODUCTS || input->parts <= FT_GEMV_MAX_PARTS);
}

static bool supports_gate(const ft_cuda_device_props *props, const ft_cuda_gemm_args *p)
{
    return p->n_outputs == 2 && p->width[0] == p->width[1] && p->width[0] % 32 == 0 &&
           p->y_dtype == FT_F16 && p->activation == FT_ACT_NONE &&
           ft_cuda_gemv_gate_parts(props, p) <= FT_GEMV_MAX_PARTS;
}

extern "C" bool ft_cuda_gemv_fused_supports(const ft_cuda_device_props *props,
                                            const ft_cuda_gemm_args *p, const ft_gemv_input *input,
                                            const ft_gemv_gate *gate)
{
    return p->m == 1 && p->residual == NULL && ft_cuda_gemm_gemv_supports(props, p) &&
           supports_input(p, input) && (gate == NULL || supports_gate(props, p)) &&
           gemv_smem_bytes_of(p, STAGES) <= props->smem_bytes / 2;
}

/*
 * A thread block requests more than half of the shared memory. Otherwise two or three of a launch
 * share an SM where the predecessor's left first, and a decode step of Llama 2 7B takes 3.6 ms
 * instead of 2.2.
 */
static size_t smem_request(const ft_cuda_device_props *props, const ft_cuda_gemm_args *p)
{
    size_t bytes = gemv_smem_bytes_of(p, STAGES), exclusive = props->smem_bytes / 2 + 1024;
    return bytes > exclusive ? bytes : exclusive;
}

template <ft_gemv_source source, int max_k, bool gates>
static int launch(const ft_cuda_device_props *props, void *stream, const ft_cuda_gemm_args *p,
                  const ft_gemv_input *input, const ft_gemv_gate *gate)
{
    auto *kernel = gemv_fused_kernel<source, max_k, gates>;
    size_t bytes = smem_request(props, p);
    cudaError_t status =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) bytes);
    if (status != cudaSuccess)
        return (int) status;
    return ft_launch(kernel, dim3(blocks_of(props, p, gates)), GEMV_THREADS, bytes, stream,
                     props->has_pdl, 1, *p, gemv_params_of(p), *input, *gate);
}

/* Rows of up to half the maximum have kernels with half the registers. */
template <ft_gemv_source source, int max_k, bool gates>
static int launch_for_k(const ft_cuda_device_props *props, void *stream, const ft_cuda_gemm_args *p,
                        const ft_gemv_input *input, const ft_gemv_gate *gate)
{
    return p->k <= max_k / 2 ? launch<source, max_k / 2, gates>(props, stream, p, input, gate)
                             : launch<source, max_k, gates>(props, stream, p, input, gate);
}

extern "C" int ft_cuda_gemv_fused(const ft_cuda_device_props *props, void *stream,
                                  const ft_cuda_gemm_args *p, const ft_gemv_input *input,
                                  const ft_gemv_gate *gate)
{
    const ft_gemv_gate none = {};
    if (!ft_cuda_gemv_fused_supports(props, p, input, gate))
        return (int) cudaErrorNotSupported;
    if (gate != NULL)
        return input->source == FT_GEMV_NORM ? launch_for_k<FT_GEMV_NORM, GEMV_NORM_MAX_K, true>(
                                                   props, stream, p, input, gate)
                                             : (int) cudaErrorNotSupported;
    switch (input->source) {
    case FT_GEMV_NORM:
        return launch_for_k<FT_GEMV_NORM, GEMV_NORM_MAX_K, false>(props, stream, p, input, &none);
    case FT_GEMV_VALUES:
        return launch_for_k<FT_GEMV_VALUES, GEMV_VALUES_MAX_K, false>(props, stream, p, input,
                                                                      &none);
    default:
        return launch<FT_GEMV_PRODUCTS, GEMV_PRODUCTS_MAX_K, false>(props, stream, p, input, &none);
    }
}
