/*
 * decode_gemv.cu - 4-bit group-wise GEMV for one or two rows (decode step).
 *
 * A decode step is a chain of dependent GEMVs. Pipelines are filled while a kernel waits for its
 * predecessor, so its time is that of its instructions as much as that of DRAM: on an H200 eight
 * warps per SM, two per scheduler, take longer to dequantize 12288 x 4096 than DRAM to deliver it.
 * Hence there are sixteen warps with half the registers. They take k tiles of 128 columns
 * round-robin and store unscaled sums in shared memory; everything that is not needed for each k
 * tile is done after that, a row per lane. Pipelines are short, because prefetches beyond them
 * delay the loads of the kernels that compute x.
 *
 * With one row, dependents launch after each warp's first k tile (695 tokens/s of Llama 2 7B). In a
 * benchmark of back-to-back GEMVs, whose prefetches take bandwidth from this kernel, they launch
 * with the last copies (12288 x 4096: 7.8 us instead of 8.7).
 *
 * Instruction cache misses matter: 16 to 27 KB of code instead of 11 to 18 gave 649 tokens/s
 * instead of 677. So there are template instances with and without norm and gate, loops are
 * unrolled only where needed, and features that decoders do not use, such as activations, are left
 * to groupwise_gemv.cu.
 *
 * A thread block computes the norm of its row itself, and the gate of two linears of which it has
 * the same panels, which saves a kernel each.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/groupwise/decode_gemv_load_store.cuh"
#include "kernels/cuda/ptx/warp.cuh"

/* ---- The kernel ----------------------------------------------------------------------------- */

/* Quantized weights of a k tile, in registers. */
typedef uint4 decode_weights[GROUPWISE_TILE_K / GROUPWISE_STEP_K];

__device__ __forceinline__ void load_weights(decode_weights &qweights, const char *from)
{
#pragma unroll
    for (int k_step = 0; k_step < GROUPWISE_TILE_K / GROUPWISE_STEP_K; k_step++)
        qweights[k_step] = *(const uint4 *) (from + k_step * GROUPWISE_WARP_BYTES);
}

/* Sums of a k tile; `scales` and `zeros`: of the lane's rows, in the ring. */
template <groupwise_x_type kind, class FORMAT>
__device__ __forceinline__ void mma_k_tile(groupwise_acc &sum, const decode_weights &qweights,
                                           const char *x, const char *scales, const char *zeros)
{
    groupwise_unpacker<4, kind, FORMAT::step_scales> unpacker;
    groupwise_zero_acc(sum);
#pragma unroll
    for (int k_step = 0; k_step < GROUPWISE_TILE_K / GROUPWISE_STEP_K; k_step++) {
        uint32_t w[4][4], tokens[1][4];
        uint4 block[1] = { qweights[k_step] };
        ft_ldmatrix_x4(tokens[0], x + k_step * GROUPWISE_STEP_K * 2);
        if (FORMAT::zeros && k_step < FORMAT::steps)
            unpacker.set(*(const uint32_t *) (zeros + k_step * GROUPWISE_PANEL_ROWS));
        if constexpr (FORMAT::step_scales)
            unpacker.load_scales(scales + k_step * GROUPWISE_PANEL_ROWS * 2);
        unpacker.unpack(w, block);
        groupwise_mma_k32<kind>(sum, w, tokens);
    }
}

/* Store a lane's sums; every fourth lane has rows of the two tokens. */
__device__ __forceinline__ void store_acc(char *sums, const groupwise_acc &sum, int tokens)
{
    if (threadIdx.x % 4 != 0)
        return;
    float4 *own = (float4 *) (sums + threadIdx.x % 32 / 4 * sizeof(float4));
    own[0] = make_float4(sum[0][0], sum[0][2], sum[1][0], sum[1][2]);
    if (tokens > 1)
        own[DECODE_ACC_BYTES / sizeof(float4)] =
            make_float4(sum[0][1], sum[0][3], sum[1][1], sum[1][3]);
}

/* A warp's iteration over its k tiles: columns of x and address of sums. */
struct decode_iterator {
    int left;
    const char *x, *end; /* the lane's row: at this k tile, and its end */
    int row;             /* bytes */
    char *sums;

    __device__ __forceinline__ decode_iterator(char *shared, const decode_params &s,
                                               const decode_work_range &range, int tokens, int warp)
    {
        int lane = (int) threadIdx.x % 32;
        int token = lane % 8 < tokens ? lane % 8 : 0;
        left = decode_work_range::warp_k_tiles(range.k_tiles, warp);
        row = s.k * 2;
        x = shared + s.x_offset + token * s.x_stride + lane / 8 * 16;
        end = x + row;
        x += warp * GROUPWISE_TILE_K * 2;
        sums = shared + s.acc_offset + warp * tokens * (int) DECODE_ACC_BYTES;
    }
    __device__ __forceinline__ void next_k_tile(int tokens)
    {
        left--;
        sums += DECODE_WARPS * tokens * (int) DECODE_ACC_BYTES;
        x += DECODE_WARPS * GROUPWISE_TILE_K * 2;
        if (x >= end)
            x -= row;
    }
};

/* grid = shape.blocks. */
template <groupwise_x_type kind, class FORMAT, bool fuses_norm, decode_output end>
static __global__ void __launch_bounds__(DECODE_THREADS, 2)
    decode_gemv_kernel(const __grid_constant__ ft_cuda_groupwise_args p,
                       const __grid_constant__ decode_params s,
                       const __grid_constant__ ft_cuda_groupwise_norm norm,
                       const __grid_constant__ ft_cuda_groupwise_gate gate)
{
#if !defined __CUDA_ARCH__ ||                                                                      \
    __CUDA_ARCH__ >= 800 /* not Turing: ft_cuda_groupwise_decode_gemv_supports() */
    constexpr ft_dtype dtype = kind == GROUPWISE_X_F16 ? FT_F16 : FT_BF16;
    extern __shared__ __align__(128) char shared[];
    int warp = ft_warp_id();
    char *stages = shared + warp * (DECODE_STAGES * DECODE_K_TILE_BYTES);
    const char *qweights = stages + decode_kept(groupwise_smem_read_offset(threadIdx.x % 32));
    const decode_work_range range(s);
    int tokens = (int) p.m;
    decode_pipeline pipeline(p, s, range, stages, warp);
    char *slots = shared + s.ring_offset + warp * (FORMAT::slots * FORMAT::slot_bytes);
    decode_ring<FORMAT> ring(p, s, range, slots, warp);
    const unsigned quad = decode_kept(threadIdx.x % 32 / 4 * 4);
    const char *scales = slots + 2 * quad, *zeros = slots + FORMAT::scale_bytes + quad;
    decode_iterator walk(shared, s, range, tokens, warp);
    decode_norm_weights weights;
    if (fuses_norm)
        weights.load(norm, s.k);
    if (!FORMAT::step_scales)
        decode_load_scales(shared + s.scales_offset, p, s, range);
#pragma unroll
    for (int stage = 0; stage < DECODE_STAGES; stage++) {
        pipeline.request(stage, walk.left > stage);
        if (FORMAT::slot_bytes > 0)
            ring.request(s, stage * FORMAT::slot_bytes, walk.left > stage);
        ft_cp_async_commit();
    }
    int slot = 0, free_slot = DECODE_STAGES * FORMAT::slot_bytes; /* to read, and to fill */
    ft_pdl_wait();
    if constexpr (fuses_norm)
        decode_norm<dtype>(shared + s.x_offset, norm, weights, s.k);
    else
        decode_load_x(shared + s.x_offset, p, s);
    __syncthreads();
    int trigger_at = s.early_dependents
                         ? walk.left
                         : min(walk.left, DECODE_STAGES + 1); /* with the last copies */
#pragma unroll 1
    for (int stage = 0; walk.left > 0; stage = DECODE_STAGES - 1 - stage) {
        groupwise_acc sum;
        decode_weights weights_k_tile;
        groupwise_wait_stage(DECODE_STAGES);
        __syncwarp();
        load_weights(weights_k_tile, qweights + stage * DECODE_K_TILE_BYTES);
        __syncwarp();
        pipeline.request(stage, walk.left > DECODE_STAGES);
        if (FORMAT::slot_bytes > 0)
            ring.request(s, free_slot, walk.left > DECODE_STAGES);
        ft_cp_async_commit();
        mma_k_tile<kind, FORMAT>(sum, weights_k_tile, walk.x, scales + slot, zeros + slot);
        free_slot = slot;
        slot = slot + FORMAT::slot_bytes == FORMAT::slots * FORMAT::slot_bytes
                   ? 0
                   : slot + FORMAT::slot_bytes;
        if (walk.left == trigger_at)
            ft_pdl_launch_dependents();
        store_acc(walk.sums, sum, tokens);
        walk.next_k_tile(tokens);
    }
    ft_cp_async_wait<0>(); /* scales, for warps without a k tile */
    __syncthreads();
    decode_reduce_k_tiles<!FORMAT::step_scales>(shared, s, range, tokens, warp);
    __syncthreads();
    decode_store<dtype, end>(shared, p, s, range, gate, warp);
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

static uint32_t aligned(size_t bytes)
{
    return (uint32_t) ((bytes + 127) / 128 * 128);
}

template <class FORMAT> static void layout_smem(decode_params *s, size_t tokens)
{
    size_t panels = (size_t) s->panels * (s->fuses_gate ? 2 : 1),
           k_tiles = panels * (size_t) s->k_tiles;
    s->x_stride = (uint32_t) s->k * 2 + 16; /* padded to avoid bank conflicts */
    s->ring_offset = DECODE_WARPS * DECODE_STAGES * DECODE_K_TILE_BYTES;
    s->scales_offset = s->ring_offset + DECODE_WARPS * FORMAT::slots * FORMAT::slot_bytes;
    s->x_offset =
        aligned(s->scales_offset + (FORMAT::step_scales ? 0 : k_tiles * DECODE_SCALE_BYTES));
    s->acc_offset = aligned(s->x_offset + tokens * s->x_stride);
    s->totals_offset = (uint32_t) (s->acc_offset + k_tiles * tokens * DECODE_ACC_BYTES);
    s->bytes =
        (uint32_t) (s->totals_offset + panels * (size_t) s->splits * tokens * DECODE_ACC_BYTES);
}

/* Thread blocks with so many panels of each linear. */
static int blocks_for(const decode_params *s, int panels)
{
    int blocks = 0;
    for (int i = 0; i < (s->fuses_gate ? 1 : FT_CUDA_MAX_FUSED); i++)
        blocks += (s->panels_of[i] + panels - 1) / panels;
    return blocks;
}

/* The fewest panels per thread block that give at most `most` blocks. */
static int panels_per_block_for(const decode_params *s, int limit)
{
    int panels = 1;
    while (blocks_for(s, panels) > limit)
        panels++;
    return panels;
}

static void assign_panels(decode_params *s, int panels)
{
    s->panels = panels;
    for (int i = 0, blocks = 0; i < FT_CUDA_MAX_FUSED; i++) {
        s->first[i] = blocks;
        blocks += (s->panels_of[i] + panels - 1) / panels;
    }
    s->blocks = blocks_for(s, panels);
}

/* Two thread blocks per SM, if they take no longer than one and fit. */
template <class FORMAT>
static decode_params params_of(const ft_cuda_device_props *props, const ft_cuda_groupwise_args *p,
                               bool fuses_gate)
{
    constexpr int columns = FORMAT::step_scales ? GROUPWISE_STEP_K : GROUPWISE_TILE_K;
    decode_params s = {};
    s.k = (int) p->k;
    s.k_tiles = s.k / GROUPWISE_TILE_K;
    s.splits = (s.k_tiles + DECODE_K_TILES_PER_SPLIT - 1) / DECODE_K_TILES_PER_SPLIT;
    s.group_magic = p->group == 0 ? 0 : groupwise_div_magic((uint32_t) (p->group / columns));
    s.groups = p->group == 0 ? 0 : s.k / p->group;
    s.groups_per_advance = p->group == 0 ? 0 : DECODE_WARPS * GROUPWISE_TILE_K / p->group;
    s.k_tiles_magic = groupwise_div_magic((uint32_t) s.k_tiles);
    s.k_tile_splits_magic = groupwise_div_magic((uint32_t) s.splits);
    s.fuses_gate = fuses_gate;
    s.early_dependents = p->m == 1 && !p->back_to_back;
    for (int i = 0; i < p->n_linears; i++)
        s.panels_of[i] =
            (int) (ft_layout_rows(FT_PANEL32, p->linear[i].rows) / GROUPWISE_PANEL_ROWS);
    size_t tokens = p->m < DECODE_MAX_M ? p->m : DECODE_MAX_M;
    int panels_one_block = panels_per_block_for(&s, props->sm_count);
    int panels_two_blocks = panels_per_block_for(&s, 2 * props->sm_count);
    assign_panels(&s, panels_two_blocks);
    layout_smem<FORMAT>(&s, tokens);
    s.two_blocks_per_sm =
        2 * panels_two_blocks <= panels_one_block && s.bytes <= groupwise_half_smem(props);
    if (!s.two_blocks_per_sm) {
        assign_panels(&s, panels_one_block);
        layout_smem<FORMAT>(&s, tokens);
    }
    return s;
}

extern "C" size_t ft_cuda_groupwise_decode_gemv_max_m(void)
{
    return DECODE_MAX_M;
}

static bool supports_norm(const ft_cuda_groupwise_args *p, const ft_cuda_groupwise_norm *norm)
{
    return p->m == 1 && p->k <= DECODE_NORM_MAX_K && p->k % FT_NORM_PARTIALS == 0 &&
           (norm->residual == NULL) == (norm->sum == NULL);
}

static bool supports_gate(const ft_cuda_groupwise_args *p)
{
    return p->n_linears == 2 && p->linear[0].rows == p->linear[1].rows && p->m <= DECODE_MAX_M &&
           p->y_dtype == p->x_dtype;
}

/* Whether a warp's k tiles are a whole number of groups apart, as decode_ring needs. */
static bool supports_groups(const ft_cuda_groupwise_args *p)
{
    int group = p->group;
    bool uses_ring = groupwise_has_step_scales(p) || p->linear[0].zero != NULL;
    return !uses_ring || group == 0 ||
           (DECODE_WARPS * GROUPWISE_TILE_K % group == 0 && p->k % (size_t) group == 0);
}

/* The quantized weights of a linear are contiguous whole k tiles. */
static bool supports_weights(const ft_cuda_groupwise_args *p)
{
    return supports_groups(p) && p->bits == 4 && !p->int8_activations &&
           p->k % GROUPWISE_TILE_K == 0 && p->k >= DECODE_WARPS * GROUPWISE_TILE_K &&
           p->k <= 1 << 16;
}

static size_t smem_bytes(const ft_cuda_device_props *props, const ft_cuda_groupwise_args *p,
                         bool fuses_gate)
{
    bool zeros = p->linear[0].zero != NULL;
    if (groupwise_has_step_scales(p))
        return zeros ? params_of<decode_format<true, true>>(props, p, fuses_gate).bytes
                     : params_of<decode_format<true, false>>(props, p, fuses_gate).bytes;
    return zeros ? params_of<decode_format<false, true>>(props, p, fuses_gate).bytes
                 : params_of<decode_format<false, false>>(props, p, fuses_gate).bytes;
}

extern "C" bool ft_cuda_groupwise_decode_gemv_supports(const ft_cuda_device_props *props,
                                                       const ft_cuda_groupwise_args *p,
                                                       const ft_cuda_groupwise_norm *norm,
                                                       const ft_cuda_groupwise_gate *gate)
{
    ft_cuda_groupwise_args limit = *p;
    limit.m = norm != NULL || p->m == 1 ? 1 : DECODE_MAX_M;
    size_t rows = 0;
    for (int i = 0; i < p->n_linears; i++)
        rows += p->linear[i].rows;
    return props->capability >= 80 && p->x_dtype != FT_F32 && (uintptr_t) p->x % 16 == 0 &&
           p->activation == FT_ACT_NONE && supports_weights(p) && rows < 1 << 20 &&
           (norm == NULL || supports_norm(p, norm)) && (gate == NULL || supports_gate(p)) &&
           smem_bytes(props, &limit, gate != NULL) <= props->smem_bytes;
}

template <groupwise_x_type kind, class FORMAT, bool fuses_norm, decode_output end>
static int launch(const ft_cuda_device_props *props, void *stream, const ft_cuda_groupwise_args *p,
                  const ft_cuda_groupwise_norm *norm, const ft_cuda_groupwise_gate *gate)
{
    const ft_cuda_groupwise_gate none = {};
    const ft_cuda_groupwise_norm no_norm = {};
    auto *kernel = decode_gemv_kernel<kind, FORMAT, fuses_norm, end>;
    decode_params s = params_of<FORMAT>(props, p, end != DECODE_STORE_LINEARS);
    size_t bytes =
        s.two_blocks_per_sm || p->back_to_back ? s.bytes : groupwise_exclusive_smem(props, s.bytes);
    cudaError_t status =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) bytes);
    return status != cudaSuccess
               ? (int) status
               : ft_launch(kernel, dim3((unsigned) s.blocks), DECODE_THREADS, bytes, stream,
                           props->has_pdl, 1, *p, s, norm != NULL ? *norm : no_norm,
                           gate != NULL ? *gate : none);
}

template <groupwise_x_type kind, class FORMAT, bool fuses_norm>
static int launch_output(const ft_cuda_device_props *props, void *stream,
                         const ft_cuda_groupwise_args *p, const ft_cuda_groupwise_norm *norm,
                         const ft_cuda_groupwise_gate *gate)
{
    if (gate == NULL)
        return launch<kind, FORMAT, fuses_norm, DECODE_STORE_LINEARS>(props, stream, p, norm, gate);
    return gate->activation == FT_ACT_SILU
               ? launch<kind, FORMAT, fuses_norm, DECODE_STORE_SILU_GATE>(props, stream, p, norm,
                                                                          gate)
               : launch<kind, FORMAT, fuses_norm, DECODE_STORE_GATE>(props, stream, p, norm, gate);
}

template <groupwise_x_type kind, class FORMAT>
static int launch_norm(const ft_cuda_device_props *props, void *stream,
                       const ft_cuda_groupwise_args *p, const ft_cuda_groupwise_norm *norm,
                       const ft_cuda_groupwise_gate *gate)
{
    return norm != NULL ? launch_output<kind, FORMAT, true>(props, stream, p, norm, gate)
                        : launch_output<kind, FORMAT, false>(props, stream, p, norm, gate);
}

template <groupwise_x_type kind>
static int launch_format(const ft_cuda_device_props *props, void *stream,
                         const ft_cuda_groupwise_args *p, const ft_cuda_groupwise_norm *norm,
                         const ft_cuda_groupwise_gate *gate)
{
    bool zeros = p->linear[0].zero != NULL;
    if (groupwise_has_step_scales(p))
        return zeros ? launch_norm<kind, decode_format<true, true>>(props, stream, p, norm, gate)
                     : launch_norm<kind, decode_format<true, false>>(props, stream, p, norm, gate);
    return zeros ? launch_norm<kind, decode_format<false, true>>(props, stream, p, norm, gate)
                 : launch_norm<kind, decode_format<false, false>>(props, stream, p, norm, gate);
}

/* Larger m takes several launches. */
extern "C" int ft_cuda_groupwise_decode_gemv(const ft_cuda_device_props *props, void *stream,
                                             const ft_cuda_groupwise_args *p,
                                             const ft_cuda_groupwise_norm *norm,
                                             const ft_cuda_groupwise_gate *gate)
{
    int status = 0;
    for (size_t row = 0; row < p->m && status == 0; row += DECODE_MAX_M) {
        ft_cuda_groupwise_args slice = groupwise_slice_rows(p, row, DECODE_MAX_M);
        status = p->x_dtype == FT_F16
                     ? launch_format<GROUPWISE_X_F16>(props, stream, &slice, norm, gate)
                     : launch_format<GROUPWISE_X_BF16>(props, stream, &slice, norm, gate);
    }
    return status;
}
