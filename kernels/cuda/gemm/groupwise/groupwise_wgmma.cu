/*
 * groupwise_wgmma.cu - wgmma GEMM with group-wise quantized weights on sm_90a, in the accumulation
 * order of groupwise.cuh: wgmma returns the bits of mma.sync.
 *
 * Weights are the A operand: they go from the TMA pipeline to registers and are dequantized there.
 * Tokens are the B operand in shared memory, from a pipeline too. Each consumer warpgroup has 64
 * weight rows, and all share the tokens.
 *
 * While a k tile is multiplied, weights of the next one are dequantized and a finished split is
 * added to the totals; only scaling the accumulators happens between two wgmma. With many tokens
 * the accumulators leave registers for one k tile of weights: these are then dequantized between
 * wgmma, and the remaining registers hold totals, which are otherwise in shared memory. Meanwhile
 * the tensor cores work for the other warpgroups.
 *
 * The kernel is bound by the latency of a warp's instruction sequence, with two or three warps per
 * scheduler. Therefore barriers are tested long before their result is needed. (Slower:
 * dequantizing between the instructions of a wgmma, halving k tiles or tokens, and strict ping-pong
 * between warpgroups. One warpgroup alone does not saturate the tensor cores, and each instruction
 * takes time to issue.)
 *
 * Many tokens are compute-bound, with accumulators in most registers of two consumer warpgroups.
 * Few tokens are memory-bound, which three warpgroups handle faster.
 *
 * Where there are fewer tiles than SMs, the thread blocks of a cluster split k.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/groupwise/groupwise_tiles.h"
#include "kernels/cuda/gemm/groupwise/groupwise_wgmma_epilogue.cuh"
#include "kernels/cuda/gemm/groupwise/groupwise_wgmma_split_k.cuh"

enum { STEPS = GROUPWISE_TILE_K / GROUPWISE_STEP_K };

#ifdef FT_HAS_WGMMA

/* ---- Weights -------------------------------------------------------------------------------- */

/* The first of a lane's two rows: rows g and g + 8 of its warp's 16 are adjacent weight rows. */
__device__ __forceinline__ int own_row()
{
    return (int) threadIdx.x / 32 * 16 + (int) threadIdx.x % 32 / 4 * 2;
}

/*
 * A lane's dequantized weights of a k tile: the A operand of each instruction, 16 columns, and the
 * scales of its sums.
 */
template <class CONFIG> struct wgmma_weights {
    uint32_t w[STEPS][2][4];
    float scale[2];

    /*
     * Compiler fence after the wgmma has completed: until then it reads these registers behind the
     * compiler's back.
     */
    __device__ __forceinline__ void fence()
    {
#pragma unroll
        for (int i = 0; i < STEPS * 8; i++)
            asm volatile("" : "+r"(w[i / 8][i / 4 % 2][i % 4]));
    }
};

/* Quantized weights of a k tile, loaded from shared memory. */
template <class CONFIG> struct wgmma_qweights {
    static constexpr int blocks = CONFIG::bits / 4; /* loads per step */
    ft_raw_vec<2> word[STEPS * blocks];
    uint32_t scales[CONFIG::scales], zeros[CONFIG::scales];

    __device__ __forceinline__ void load(const char *qweights, const char *scale, const char *zero,
                                         bool has_zeros)
    {
        int t = (int) threadIdx.x % 4, row = own_row(), chunk = row % GROUPWISE_PANEL_ROWS / 4;
        const char *panel = qweights + row / GROUPWISE_PANEL_ROWS * CONFIG::panel +
                            t * WGMMA_ROW_BYTES + row % 4 * 4;
#pragma unroll
        for (int i = 0; i < CONFIG::scales; i++) {
            scales[i] = *(const uint32_t *) (scale + 2 * (i * CONFIG::weights + row));
            if (has_zeros)
                zeros[i] = *(const uint16_t *) (zero + i * CONFIG::weights + row);
        }
#pragma unroll
        for (int block = 0; block < STEPS * blocks; block++)
            word[block] = *(const ft_raw_vec<2> *) (panel + block * GROUPWISE_WARP_BYTES +
                                                    (chunk ^ (t + block % 2 * 4)) * 16);
    }
    /*
     * With one branch for all steps their instructions interleave; where registers are scarce, with
     * one for each step.
     */
    __device__ __forceinline__ void unpack(wgmma_weights<CONFIG> &to, bool has_zeros) const
    {
        if (!CONFIG::double_buffered)
            unpack_steps(to, has_zeros);
        else if (has_zeros)
            unpack_steps(to, true);
        else
            unpack_steps(to, false);
    }
    __device__ __forceinline__ void unpack_steps(wgmma_weights<CONFIG> &to, bool has_zeros) const
    {
        groupwise_unpacker<CONFIG::bits, CONFIG::kind, CONFIG::step_scales> unpacker;
        __half2 both = *(const __half2 *) &scales[0];
        to.scale[0] = __low2float(both);
        to.scale[1] = __high2float(both);
#pragma unroll
        for (int k_step = 0; k_step < STEPS; k_step++) {
            uint32_t pair[2][4];
            if (has_zeros && k_step < CONFIG::scales)
                unpacker.set(zeros[k_step]);
            if constexpr (CONFIG::step_scales)
                unpacker.set_scales(scales[k_step], 0);
#pragma unroll
            for (int i = 0; i < blocks; i++)
#pragma unroll
                for (int j = 0; j < 2; j++)
                    if constexpr (CONFIG::bits == 4)
                        unpacker.nibbles(pair[j], word[k_step].word[j], j);
                    else
                        unpacker.bytes(pair[j] + 2 * i, word[k_step * blocks + i].word[j], j);
#pragma unroll
            for (int i = 0; i < 8; i++)
                to.w[k_step][i / 4][i % 4] = pair[i % 2][i / 2];
        }
    }
};

/* ---- Consumer ------------------------------------------------------------------------------- */

template <class CONFIG> struct wgmma_consumer {
    const ft_cuda_groupwise_args &p;
    const wgmma_args &a;
    wgmma_smem<CONFIG> s;
    ft_pipeline qweights, x;                /* next k tile to dequantize, and to multiply */
    wgmma_tile_scheduler<CONFIG> scheduler; /* at the k tile that is finished next */
    int k_tiles_left;                       /* k tiles left, including the one being multiplied */
    float k_tile_acc[CONFIG::tokens / 2];   /* a lane's accumulators of its rows and tokens */
    float split[CONFIG::tokens / 2] = {};   /* 8j + 2t, 8j + 2t + 1 (wgmma.cuh) */
    float register_totals[CONFIG::register_totals * 4 + 1]; /* totals of the first 8-token tiles */

    __device__ __forceinline__ wgmma_consumer(const wgmma_smem<CONFIG> &s,
                                              const ft_cuda_groupwise_args &p, const wgmma_args &a)
        : p(p), a(a), s(s), qweights(s.qweights()), x(s.x()), scheduler(a),
          k_tiles_left(scheduler.total_k_tiles())
    {
    }

    /* ---- Totals: the first 8-token tiles in registers, the others in shared memory ---- */

    /* A split is complete; `first`: the first one of the tile. */
    __device__ __forceinline__ void add_split(bool first)
    {
#pragma unroll
        for (int i = 0; i < CONFIG::m8_tiles; i++) {
            float *sum = &split[4 * i];
            if (i < CONFIG::register_totals) {
#pragma unroll
                for (int j = 0; j < 4; j++)
                    register_totals[4 * i + j] =
                        first ? sum[j] : register_totals[4 * i + j] + sum[j];
            } else {
                float4 *total = &s.totals()[i * CONFIG::consumers];
                if (!first) {
                    float4 before = *total;
                    sum[0] = before.x + sum[0];
                    sum[1] = before.y + sum[1];
                    sum[2] = before.z + sum[2];
                    sum[3] = before.w + sum[3];
                }
                *total = make_float4(sum[0], sum[1], sum[2], sum[3]);
            }
            sum[0] = sum[1] = sum[2] = sum[3] = 0.0f;
        }
    }
    /* The tile is complete: all totals to shared memory. */
    __device__ __forceinline__ void flush_register_totals()
    {
#pragma unroll
        for (int i = 0; i < CONFIG::register_totals; i++)
            s.totals()[i * CONFIG::consumers] =
                make_float4(register_totals[4 * i], register_totals[4 * i + 1],
                            register_totals[4 * i + 2], register_totals[4 * i + 3]);
    }
    /* The part of the tile that this block finishes: `m8_tiles` 8-token tiles. */
    __device__ __forceinline__ void store_part(int first_eight, int m8_tiles)
    {
        size_t first = (size_t) scheduler.tile.token + 8 * first_eight, end = first + 8 * m8_tiles;
        wgmma_store<CONFIG>(p, scheduler.tile, first, end < p.m ? end : p.m, own_row(), s.totals());
    }

    /* ---- K tiles ---- */

    __device__ __forceinline__ bool has_zeros() const
    {
        return p.linear[0].zero != NULL;
    }
    __device__ __forceinline__ void load_next(wgmma_qweights<CONFIG> &next, bool have_arrived)
    {
        if (!have_arrived)
            qweights.consumer_wait();
        next.load(s.qweights_of(qweights), s.scales_of(qweights), s.zeros_of(qweights),
                  has_zeros());
    }
    __device__ __forceinline__ void unpack_next(wgmma_weights<CONFIG> &weights,
                                                const wgmma_qweights<CONFIG> &next)
    {
        next.unpack(weights, has_zeros());
        __syncwarp();
        qweights.consumer_release();
        qweights.advance();
    }
    /* Issues the wgmma without waiting for it. */
    __device__ __forceinline__ void multiply(const wgmma_weights<CONFIG> &weights, bool test_wait)
    {
        uint64_t tokens = ft_wgmma_descriptor(s.x_of(x));
        if (!test_wait)
            x.consumer_wait();
        ft_wgmma_fence();
#pragma unroll
        for (int k_step = 0; k_step < STEPS; k_step++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                ft_wgmma_f16_register_a<CONFIG::tokens, CONFIG::kind == GROUPWISE_X_BF16>(
                    k_tile_acc, weights.w[k_step][i],
                    tokens + k_step / 2 * (CONFIG::x_box / 16) + k_step % 2 * 4 + i * 2,
                    k_step + i > 0);
        ft_wgmma_commit();
    }
    __device__ __forceinline__ void wait(wgmma_weights<CONFIG> &weights)
    {
        ft_wgmma_wait<0>();
        ft_wgmma_fence_acc(k_tile_acc);
        weights.fence();
        x.consumer_release();
        x.advance();
    }
    __device__ __forceinline__ void scale(const wgmma_weights<CONFIG> &weights)
    {
#pragma unroll
        for (int i = 0; i < CONFIG::tokens / 2; i++)
            split[i] = CONFIG::step_scales
                           ? split[i] + k_tile_acc[i]
                           : fmaf(weights.scale[i % 4 / 2], k_tile_acc[i], split[i]);
    }
    /*
     * After a k tile: advance, and handle the end of a split or tile. The epilogue takes long to
     * compile, so both ways of splitting k share one.
     */
    __device__ __forceinline__ void advance_k_tile()
    {
        int number = scheduler.column / GROUPWISE_SPLIT_K, first = 0, count = CONFIG::m8_tiles;
        const bool shares = CONFIG::split_k && a.cluster_size > 1;
        scheduler.advance();
        bool ends = scheduler.ends();
        if (!ends && scheduler.column % GROUPWISE_SPLIT_K != 0)
            return;
        if (shares) {
            wgmma_cluster_reducer<CONFIG> reducer(s, scheduler, p.m);
            reducer.add(number, ends, split);
            first = reducer.first;
            count = reducer.count;
        } else {
            add_split(number == 0);
        }
        if (!ends)
            return;
        flush_register_totals();
        store_part(first, count);
        if (!shares)
            scheduler.next_tile();
    }
    /* Mainloop with one k tile of weights in registers: the next one is loaded during the wgmma. */
    __device__ __forceinline__ void mainloop_single_buffer()
    {
        wgmma_weights<CONFIG> weights;
        wgmma_qweights<CONFIG> next;
        load_next(next, false);
        unpack_next(weights, next);
        multiply(weights, false);
        for (bool begun = false;; begun = true) {
            bool follows = k_tiles_left > 1,
                 qweights_ready = follows && qweights.consumer_test_wait();
            if (begun)
                advance_k_tile(); /* the previous one */
            if (follows)
                load_next(next, qweights_ready);
            wait(weights);
            bool x_ready = x.consumer_test_wait();
            scale(weights);
            if (!follows)
                break;
            unpack_next(weights, next);
            multiply(weights, x_ready);
            k_tiles_left--;
        }
        advance_k_tile();
    }
    __device__ __forceinline__ void unpack(wgmma_weights<CONFIG> &weights, bool have_arrived)
    {
        wgmma_qweights<CONFIG> next;
        load_next(next, have_arrived);
        unpack_next(weights, next);
    }
    /*
     * Finish a k tile while the next one, whose weights are ready, is multiplied; then dequantize
     * the one after it into the registers of the first.
     */
    __device__ __forceinline__ void advance(wgmma_weights<CONFIG> &weights,
                                            const wgmma_weights<CONFIG> &next)
    {
        wait(weights);
        bool follows = k_tiles_left > 2, x_ready = x.consumer_test_wait();
        bool qweights_ready = follows && qweights.consumer_test_wait();
        scale(weights);
        multiply(next, x_ready);
        advance_k_tile();
        if (follows)
            unpack(weights, qweights_ready);
        k_tiles_left--;
    }
    /* Mainloop with double-buffered weights. */
    __device__ __forceinline__ void mainloop_double_buffer()
    {
        wgmma_weights<CONFIG> even, odd;
        unpack(even, false);
        multiply(even, false);
        if (k_tiles_left > 1)
            unpack(odd, false);
        while (k_tiles_left > 1) {
            advance(even, odd);
            if (k_tiles_left == 1) {
                even.scale[0] = odd.scale[0];
                even.scale[1] = odd.scale[1];
                break;
            }
            advance(odd, even);
        }
        wait(even); /* the last k tile: in `odd` if that is where its weights are */
        odd.fence();
        scale(even);
        advance_k_tile();
    }
    __device__ __forceinline__ void consume()
    {
        ft_pdl_wait(); /* earlier kernels may still read the previous contents of y */
        if constexpr (CONFIG::double_buffered)
            mainloop_double_buffer();
        else
            mainloop_single_buffer();
    }
};

#endif

/* grid: clusters of a.cluster_size thread blocks per tile, or as many blocks as there are SMs */
template <class CONFIG>
static __global__ void __launch_bounds__(CONFIG::threads, 1)
    wgmma_kernel(const __grid_constant__ ft_cuda_groupwise_args p,
                 const __grid_constant__ wgmma_args a)
{
#ifdef FT_HAS_WGMMA
    extern __shared__ __align__(1024) char shared[];
    const wgmma_smem<CONFIG> s = { shared, a };
    const bool split_k = CONFIG::split_k && a.cluster_size > 1;
    if (threadIdx.x == CONFIG::consumers) {
        s.x().init(CONFIG::consumers / 32);
        s.qweights().init(CONFIG::consumers / 32);
        ft_mbarrier_init(&s.partial_barriers()[0], 1);
        ft_mbarrier_init(&s.partial_barriers()[1], 1);
        ft_mbarrier_fence_init();
    }
    __syncthreads();
    if (split_k)
        ft_cluster_arrive_relaxed();
    if (threadIdx.x < CONFIG::consumers) {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(CONFIG::consumer_registers));
        wgmma_consumer<CONFIG>(s, p, a).consume();
    } else {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(CONFIG::producer_registers));
        if (threadIdx.x == CONFIG::consumers)
            wgmma_produce_weights<CONFIG>(s, p, a);
        else if (threadIdx.x == CONFIG::consumers + 32)
            wgmma_produce_tokens<CONFIG>(s, a);
        __syncwarp();
        if (split_k)
            ft_cluster_wait();
    }
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

template <class CONFIG>
static int launch(const ft_cuda_device_props *props, void *stream, const ft_cuda_groupwise_args *p)
{
    wgmma_args a;
    int status = wgmma_args_init<CONFIG>(&a, props, p);
    if (status == 0)
        status = (int) cudaFuncSetAttribute(
            wgmma_kernel<CONFIG>, cudaFuncAttributeMaxDynamicSharedMemorySize, WGMMA_MAX_SMEM);
    unsigned max_ctas = (unsigned) props->sm_count, tiles = (unsigned) a.tiles;
    unsigned blocks = a.cluster_size > 1 ? tiles * (unsigned) a.cluster_size
                      : tiles < max_ctas ? tiles
                                         : max_ctas;
    return status != 0 ? status
                       : ft_launch(wgmma_kernel<CONFIG>, blocks, CONFIG::threads,
                                   wgmma_shared_bytes<CONFIG>(&a), stream, props->has_pdl,
                                   (unsigned) a.cluster_size, *p, a);
}

/* 8-bit weights would not leave enough registers to three warpgroups with 64 tokens. */
template <int bits, groupwise_x_type kind, bool step_scales>
static int launch_tile(ft_cuda_groupwise_wgmma_tile tile, const ft_cuda_device_props *props,
                       void *stream, const ft_cuda_groupwise_args *p)
{
    if (tile == FT_CUDA_GROUPWISE_WGMMA_N192_M16)
        return launch<wgmma_config<bits, kind, step_scales, 3, 16>>(props, stream, p);
    if (tile == FT_CUDA_GROUPWISE_WGMMA_N192_M32)
        return launch<wgmma_config<bits, kind, step_scales, 3, 32>>(props, stream, p);
    if constexpr (bits == 4)
        if (tile == FT_CUDA_GROUPWISE_WGMMA_N192_M64)
            return launch<wgmma_config<bits, kind, step_scales, 3, 64>>(props, stream, p);
    return tile == FT_CUDA_GROUPWISE_WGMMA_N128_M64
               ? launch<wgmma_config<bits, kind, step_scales, 2, 64>>(props, stream, p)
               : launch<wgmma_config<bits, kind, step_scales, 2, 128>>(props, stream, p);
}

template <int bits, groupwise_x_type kind, bool step_scales>
static ft_cuda_groupwise_wgmma_tile select_tile(const ft_cuda_device_props *props,
                                                const ft_cuda_groupwise_args *p)
{
    using n64_config = wgmma_config<bits, kind, step_scales, 2, 64>;
    using n128_config = wgmma_config<bits, kind, step_scales, 2, 128>;
    if (p->m <= 16)
        return FT_CUDA_GROUPWISE_WGMMA_N192_M16;
    if (p->m <= 32)
        return FT_CUDA_GROUPWISE_WGMMA_N192_M32;
    double time_n64 = wgmma_cluster_plan_of<n64_config>(props, p).time;
    double time_n128 = wgmma_cluster_plan_of<n128_config>(props, p).time;
    if constexpr (bits == 4) {
        using three_warpgroups = wgmma_config<bits, kind, step_scales, 3, 64>;
        double time_three = wgmma_cluster_plan_of<three_warpgroups>(props, p).time;
        if (time_three < time_n64 && time_three < time_n128)
            return FT_CUDA_GROUPWISE_WGMMA_N192_M64;
    }
    return time_n64 < time_n128 ? FT_CUDA_GROUPWISE_WGMMA_N128_M64
                                : FT_CUDA_GROUPWISE_WGMMA_N128_M128;
}

/* Whole k tiles, and x without conversion. */
bool ft_cuda_groupwise_wgmma_supports(const ft_cuda_device_props *props,
                                      const ft_cuda_groupwise_args *p)
{
    groupwise_shape shape = groupwise_shape_of(p);
    uint64_t tiles = ((uint64_t) shape.panels / 4 + FT_CUDA_MAX_FUSED) * (p->m / 16 + 1);
    return props->has_wgmma && p->k % GROUPWISE_TILE_K == 0 && p->x_dtype != FT_F32 &&
           (uintptr_t) p->x % 16 == 0 && p->k < 1u << 20 &&
           tiles * (uint64_t) shape.splits < 1u << 31 && props->smem_bytes >= WGMMA_MAX_SMEM;
}

bool ft_cuda_groupwise_wgmma_tile_fits(ft_cuda_groupwise_wgmma_tile tile,
                                       const ft_cuda_groupwise_args *p)
{
    return tile != FT_CUDA_GROUPWISE_WGMMA_N192_M64 || p->bits == 4;
}

template <int bits, groupwise_x_type kind>
static ft_cuda_groupwise_wgmma_tile select_scales(const ft_cuda_device_props *props,
                                                  const ft_cuda_groupwise_args *p)
{
    return groupwise_has_step_scales(p) ? select_tile<bits, kind, true>(props, p)
                                        : select_tile<bits, kind, false>(props, p);
}

ft_cuda_groupwise_wgmma_tile ft_cuda_groupwise_wgmma_select(const ft_cuda_device_props *props,
                                                            const ft_cuda_groupwise_args *p)
{
    bool bf16 = p->x_dtype == FT_BF16;
    return p->bits == 4 ? bf16 ? select_scales<4, GROUPWISE_X_BF16>(props, p)
                               : select_scales<4, GROUPWISE_X_F16>(props, p)
           : bf16 ? select_scales<8, GROUPWISE_X_BF16>(props, p)
                        : select_scales<8, GROUPWISE_X_F16>(props, p);
}

template <int bits, groupwise_x_type kind>
static int launch_scales(ft_cuda_groupwise_wgmma_tile tile, const ft_cuda_device_props *props,
                         void *stream, const ft_cuda_groupwise_args *p)
{
    return groupwise_has_step_scales(p) ? launch_tile<bits, kind, true>(tile, props, stream, p)
                                        : launch_tile<bits, kind, false>(tile, props, stream, p);
}

int ft_cuda_groupwise_wgmma(ft_cuda_groupwise_wgmma_tile tile, const ft_cuda_device_props *props,
                            void *stream, const ft_cuda_groupwise_args *p)
{
    bool bf16 = p->x_dtype == FT_BF16;
    return p->bits == 4 ? bf16 ? launch_scales<4, GROUPWISE_X_BF16>(tile, props, stream, p)
                               : launch_scales<4, GROUPWISE_X_F16>(tile, props, stream, p)
           : bf16 ? launch_scales<8, GROUPWISE_X_BF16>(tile, props, stream, p)
                        : launch_scales<8, GROUPWISE_X_F16>(tile, props, stream, p);
}
