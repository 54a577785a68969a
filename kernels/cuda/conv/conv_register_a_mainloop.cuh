/*
 * conv_register_a_mainloop.cuh - the consumer warpgroups of conv_register_a.cuh: from quantized
 * weights and windows to the output.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_CONV_CONV_REGISTER_A_MAINLOOP_CUH
#define FT_KERNELS_CUDA_CONV_CONV_REGISTER_A_MAINLOOP_CUH

#include "kernels/cuda/conv/conv_register_a.cuh"
#include "kernels/cuda/conv/conv_wgmma_epilogue.cuh"
#include "kernels/cuda/ptx/named_barrier.cuh"
#include "kernels/cuda/ptx/warp.cuh"

enum {
    MMA_K_STEPS = GROUPWISE_TILE_K / GROUPWISE_STEP_K,
    CONSUMER_BARRIER = 1,     /* barriers 1 and 2, one per warpgroup */
    SPLIT_K_ORDER_BARRIER = 3 /* orders the two warpgroups */
};

#ifdef FT_HAS_WGMMA

/* ---- Weights -------------------------------------------------------------------------------- */

/*
 * The first of a lane's two output channels of the tile: rows g and g + 8 of its warp's 16 are
 * consecutive channels, as in conv_row_output().
 */
__device__ __forceinline__ int lane_output()
{
    return (int) threadIdx.x / 32 * 16 + (int) threadIdx.x % 32 / 4 * 2;
}

/*
 * Where a lane finds its part of any K tile: byte offset in the weights of the K tile, and its
 * first output channel. The asm hides the values from the compiler, which would recompute them for
 * each K tile otherwise.
 */
struct weight_lane {
    int packed, output;

    __device__ __forceinline__ weight_lane(int panel)
    {
        int t = (int) threadIdx.x % 4;
        output = lane_output();
        packed = output / GROUPWISE_PANEL_ROWS * panel + t * 128 + output % 4 * 4 +
                 (output % GROUPWISE_PANEL_ROWS / 4 ^ t) * 16;
        asm volatile("" : "+r"(packed), "+r"(output));
    }
};

/*
 * A lane's part of a K tile as loaded: quantized weights of its two output channels, scales, and
 * optional zero points.
 */
template <class FORM> struct packed_weights {
    static constexpr int blocks = MMA_K_STEPS * FORM::bits / 4;
    ft_raw_vec<2> word[blocks];
    __half2 scale;
    uint16_t zero;

    __device__ __forceinline__ void fetch(const weight_lane &lane, const char *packed,
                                          const char *scales, const char *zeros)
    {
#pragma unroll
        for (int i = 0; i < blocks; i++)
            word[i] = *(const ft_raw_vec<2> *) (packed + i * GROUPWISE_WARP_BYTES +
                                                (lane.packed ^ i % 2 * 64));
        scale = *(const __half2 *) (scales + 2 * lane.output);
        if (zeros != NULL)
            zero = *(const uint16_t *) (zeros + lane.output);
    }
};

template <class FORM> using weight_unpacker = groupwise_unpacker<FORM::bits, FORM::kind>;

/*
 * A lane's part of a K tile, dequantized: the A operand of each MMA of 16 columns, and the scales.
 */
template <class FORM> struct unpacked_weights {
    uint32_t w[MMA_K_STEPS][2][4];
    float scale[2];

    __device__ __forceinline__ void unpack(const packed_weights<FORM> &packed,
                                           const weight_unpacker<FORM> &unpacker)
    {
        constexpr int blocks = FORM::bits / 4; /* per K step of 32 columns */
        scale[0] = __low2float(packed.scale);
        scale[1] = __high2float(packed.scale);
#pragma unroll
        for (int k_step = 0; k_step < MMA_K_STEPS; k_step++) {
            uint32_t pair[2][4];
#pragma unroll
            for (int i = 0; i < blocks; i++)
#pragma unroll
                for (int j = 0; j < 2; j++)
                    if constexpr (FORM::bits == 4)
                        unpacker.nibbles(pair[j], packed.word[k_step].word[j], j);
                    else
                        unpacker.bytes(pair[j] + 2 * i, packed.word[k_step * blocks + i].word[j],
                                       j);
#pragma unroll
            for (int i = 0; i < 8; i++)
                w[k_step][i / 4][i % 4] = pair[i % 2][i / 2];
        }
    }
    /*
     * To be called after the wait for the MMAs: until then these read the registers asynchronously,
     * which the compiler does not know.
     */
    __device__ __forceinline__ void settle()
    {
#pragma unroll
        for (int i = 0; i < MMA_K_STEPS * 8; i++)
            asm volatile("" : "+r"(w[i / 8][i / 4 % 2][i % 4]));
    }
};

/* ---- Consumer ------------------------------------------------------------------------------- */

template <class FORM> struct register_a_consumer {
    const conv_gemm_params &p;
    register_a_smem<FORM> s;
    ft_pipeline packed, x; /* at the next K tile to unpack, and to multiply */
    const weight_lane lane;
    packed_weights<FORM> fetched; /* of the next K tile to unpack */
    weight_unpacker<FORM> unpacker;
    register_a_work<FORM::split_k> work;
    int k_tile,
        k_tiles_left;     /* current K tile of the work tile; remaining K tiles of all work tiles */
    int group_k_tile = 0; /* K tiles of the current group before this one */
    bool windows_ready = false; /* the windows of the next K tile to multiply have arrived */
    int second_32, third_32;    /* distances of windows to the second and third 32 bytes of K */
    uint32_t descriptor_high;   /* upper half of the window descriptors; the lower half holds the
                                   address */
    float bias[2];
    float sum[FORM::windows / 2]; /* a lane's, of its channels and windows 8j + 2t, 8j + 2t + 1 */
    float total[FORM::windows / 2] = {};

    __device__ __forceinline__ register_a_consumer(const register_a_smem<FORM> &s,
                                                   const conv_gemm_params &p)
        : p(p), s(s), packed(s.packed()), x(s.x()), lane(FORM::panel), work(p, k_tile_count(p)),
          k_tile(work.first), k_tiles_left(work.k_tiles_left(p, k_tile_count(p)))
    {
        int box_stride = FORM::windows * p.line / 16; /* stride of boxes */
        second_32 = p.line == 32 ? box_stride : 2;
        third_32 = p.line == 32 ? 2 * box_stride : p.line == 64 ? box_stride : 4;
        descriptor_high = (uint32_t) (conv_operand_descriptor(s.at, p.line) >> 32);
    }
    /*
     * Called after the first MMA of a split, which does not accumulate: the split may begin inside
     * a group.
     */
    __device__ __forceinline__ void resume_group()
    {
        if constexpr (FORM::split_k)
            group_k_tile = work.first % p.group_k_tiles;
    }
    __device__ __forceinline__ void fetch_bias()
    {
        int output = conv_tile_coord_of(p, work.tile).output + lane_output();
#pragma unroll
        for (int i = 0; i < 2; i++)
            bias[i] = p.t.bias != NULL && output + i < p.t.out_channels
                          ? __ldg(&p.t.bias[output + i])
                          : 0.0f;
    }
    /* Loads the weights early where registers allow, because shared memory has high latency. */
    __device__ __forceinline__ void fetch()
    {
        packed.consumer_wait();
        fetched.fetch(lane, s.packed_of(packed), s.scales_of(packed),
                      p.t.groupwise.zero != NULL ? s.zeros_of(packed) : NULL);
    }
    /* Unpacks the next K tile; `more`: others follow. */
    __device__ __forceinline__ void unpack_next(unpacked_weights<FORM> &weights, bool more)
    {
        if (!FORM::prefetches_weights)
            fetch();
        if (p.t.groupwise.zero != NULL)
            unpacker.set(fetched.zero);
        weights.unpack(fetched, unpacker);
        __syncwarp();
        packed.consumer_release();
        packed.advance();
        if (FORM::prefetches_weights && more)
            fetch();
    }
    /* Issues the MMAs of a K tile; the caller waits for them. */
    __device__ __forceinline__ void multiply(const unpacked_weights<FORM> &weights)
    {
        const uint32_t windows = ft_smem_address(s.x_of(x)) >> 4;
        if (!windows_ready)
            x.consumer_wait();
        ft_wgmma_fence();
#pragma unroll
        for (int k_step = 0; k_step < MMA_K_STEPS; k_step++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                ft_wgmma_f16_register_a<FORM::windows, FORM::kind == GROUPWISE_X_BF16>(
                    sum, weights.w[k_step][i],
                    (uint64_t) descriptor_high << 32 |
                        (windows + k_step / 2 * (FORM::x_k_block / 16) +
                         (k_step % 2 == 1 ? third_32 : 0) + (i == 1 ? second_32 : 0)),
                    k_step + i > 0 || group_k_tile > 0);
        ft_wgmma_commit();
    }
    /*
     * Waits for the MMAs of a K tile. The last K tile of a group adds the scaled sums to the total.
     */
    __device__ __forceinline__ void accumulate(unpacked_weights<FORM> &weights)
    {
        ft_wgmma_wait<0>();
        ft_wgmma_fence_acc(sum);
        weights.settle();
        x.consumer_release();
        x.advance();
        windows_ready =
            x.consumer_test_wait(); /* tested before the wait, because the answer has latency */
        if (++group_k_tile == p.group_k_tiles || k_tile + 1 == work.end) {
            group_k_tile = 0;
#pragma unroll
            for (int i = 0; i < FORM::windows / 2; i++)
                total[i] = fmaf(weights.scale[i % 4 / 2], sum[i], total[i]);
        }
    }
    /* NCHW epilogue. */
    __device__ __forceinline__ void store_nchw(const conv_tile_coord &coord)
    {
        int consumer = (int) threadIdx.x / CONV_WARPGROUP,
            warp = (int) threadIdx.x % CONV_WARPGROUP / 32;
        conv_epilogue<FORM>(((conv_staging *) s.out_tile_of(consumer))[warp], p,
                            coord.output + 64 * consumer, coord.segment, coord.window, total);
    }
    /* NHWC epilogue for any activation and any number of channels. */
    __device__ __forceinline__ void store_nhwc_general(const conv_tile_coord &coord)
    {
        int consumer = (int) threadIdx.x / CONV_WARPGROUP,
            warp = (int) threadIdx.x % CONV_WARPGROUP / 32;
        int output = coord.output + 64 * consumer, window = coord.window + (int) threadIdx.x % 32;
        conv_staging &staging = ((conv_staging *) s.out_tile_of(consumer))[warp];
#pragma unroll 1
        for (int from = 0; from < FORM::windows / CONV_STAGED_WINDOWS;
             from++, window += CONV_STAGED_WINDOWS) {
            conv_stage_accumulators<FORM>(staging, total, from);
            __syncwarp();
            if (p.has_activation) {
                conv_activate<FORM>(staging, p, output);
                __syncwarp();
            }
            if (window < p.segment)
                store_window(staging, (size_t) (coord.segment * p.segment + window),
                             output + 16 * warp);
            __syncwarp();
        }
    }
    /* Writes the warp's 16 output channels of a lane's window. */
    __device__ __forceinline__ void store_window(const conv_staging &staging, size_t window,
                                                 int output)
    {
        int lane = (int) threadIdx.x % 32;
        size_t at = window * (unsigned) p.t.out_channels + (unsigned) output;
#pragma unroll 1
        for (int first = 0; first < 16; first += 8) {
            float value[8];
#pragma unroll
            for (int i = 0; i < 8; i++) {
                int row = first / 2 + i / 2 + i % 2 * 8; /* conv_row_output() */
                conv_epilogue_params params = conv_epilogue_params_of<FORM>(p, output + first + i);
                value[i] = conv_output_value<FORM>(
                    p, params, staging[row][(lane / 4 ^ row % 4 * 2) * 4 + lane % 4]);
            }
            if (p.stores_x8 && output + first < p.t.out_channels)
                ft_store_as<FORM::dtype, 8>(p.t.y, at + first, value);
            for (int i = 0; i < 8 && !p.stores_x8; i++)
                if (output + first + i < p.t.out_channels)
                    ft_store_as<FORM::dtype, 1>(p.t.y, at + first + i, &value[i]);
        }
    }
    /* Fast NHWC epilogue: a window has 128 bytes in shared memory, swizzled for TMA. */
    __device__ __forceinline__ void store_nhwc(const conv_tile_coord &coord)
    {
        int consumer = (int) threadIdx.x / CONV_WARPGROUP,
            warp = (int) threadIdx.x % CONV_WARPGROUP / 32;
        int g = (int) threadIdx.x % 32 / 4, t = (int) threadIdx.x % 4;
        bool first = threadIdx.x % CONV_WARPGROUP == 0;
        char *out_tile = s.out_tile_of(consumer);
        if (first)
            ft_bulk_wait_read();
        ft_named_barrier_sync(CONSUMER_BARRIER + consumer, CONV_WARPGROUP);
#pragma unroll
        for (int i = 0; i < FORM::windows / 2; i++)
            total[i] += bias[i % 4 / 2];
        conv_clamp(p, total);
#pragma unroll
        for (int j = 0; j < 2; j++) {
            int window = 2 * t + j, chunk = (2 * warp + g / 4) ^ window;
            char *to = out_tile + window * 128 + chunk * 16 + g % 4 * 4;
#pragma unroll
            for (int i = 0; i < FORM::windows / 8; i++)
                *(uint32_t *) (to + i * 1024) =
                    ft_pack_f16x2<FORM::dtype>(total[4 * i + j], total[4 * i + 2 + j]);
        }
        ft_fence_proxy_async();
        ft_named_barrier_sync(CONSUMER_BARRIER + consumer, CONV_WARPGROUP);
        if (first && coord.output + 64 * consumer < p.t.out_channels)
            ft_tma_store_3d(out_tile, &p.y, 2 * (coord.output + 64 * consumer), coord.window,
                            coord.segment);
    }
    /*
     * Split-K: sends the partial sums to the warpgroup that finishes the tile, or receives the
     * other half and writes the results.
     */
    __device__ __forceinline__ void finish_split()
    {
        const split_k_exchange<FORM> exchange(p, s.out_tile_of(0), s.barriers(), work.tile_index);
        if (!exchange.finishes(work.split))
            return exchange.send(total);
        exchange.receive(total);
        store_nhwc(conv_tile_coord_of(p, work.tile));
        if (k_tiles_left > 1 && exchange.thread == 0)
            exchange.release_exchange();
    }
    /* After a K tile: goes on to the next one, or finishes the work tile. */
    __device__ __forceinline__ void finish_k_tile()
    {
        if (++k_tile < work.end)
            return;
        if constexpr (FORM::to == REGISTER_A_NCHW)
            store_nchw(conv_tile_coord_of(p, work.tile));
        else if constexpr (FORM::split_k)
            finish_split();
        else if constexpr (FORM::to == REGISTER_A_NHWC_GENERAL)
            store_nhwc_general(conv_tile_coord_of(p, work.tile));
        else
            store_nhwc(conv_tile_coord_of(p, work.tile));
#pragma unroll
        for (int i = 0; i < FORM::windows / 2; i++)
            total[i] = 0.0f;
        work.advance(p, k_tile_count(p));
        k_tile = work.first;
        resume_group();
        if (k_tiles_left > 1)
            fetch_bias();
    }
    /*
     * Finishes a K tile while the next one, whose weights are ready, is being multiplied. Then
     * unpacks the one after it to the registers of the first.
     */
    __device__ __forceinline__ void advance(unpacked_weights<FORM> &weights,
                                            const unpacked_weights<FORM> &next)
    {
        accumulate(weights);
        multiply(next);
        finish_k_tile();
        if (k_tiles_left > 2)
            unpack_next(weights, k_tiles_left > 3);
        k_tiles_left--;
    }
    __device__ __forceinline__ void end(unpacked_weights<FORM> &weights)
    {
        accumulate(weights);
        finish_k_tile();
        if (threadIdx.x % CONV_WARPGROUP == 0)
            ft_bulk_wait();
    }
    /*
     * Issues the first MMAs. With split-K the warpgroup that sends its sums starts before the one
     * that waits for sums, and stays ahead: its sums are in flight while the other one still
     * multiplies.
     */
    __device__ __forceinline__ void issue_first(const unpacked_weights<FORM> &weights)
    {
        bool leads = false, follows = false;
        if constexpr (FORM::split_k)
            if (p.split_k_ctas == 2) {
                follows = ft_warp_id() / (CONV_WARPGROUP / 32) == work.split;
                leads = !follows;
            }
        if (follows)
            ft_named_barrier_sync(SPLIT_K_ORDER_BARRIER, CONV_CONSUMERS);
        multiply(weights);
        if (leads)
            ft_named_barrier_arrive(SPLIT_K_ORDER_BARRIER, CONV_CONSUMERS);
        resume_group();
    }
    __device__ __forceinline__ void consume()
    {
        unpacked_weights<FORM> even, odd;
        if (FORM::prefetches_weights)
            fetch();
        unpack_next(even, k_tiles_left > 1);
        ft_pdl_wait(); /* the predecessor may still read the previous contents of y */
        issue_first(even);
        if (k_tiles_left > 1)
            unpack_next(odd, k_tiles_left > 2);
        fetch_bias();
        if (FORM::split_k && p.split_k_ctas == 2)
            ft_cluster_wait(); /* both CTAs of the cluster have started */
        for (;;) {
            if (k_tiles_left == 1)
                return end(even);
            advance(even, odd);
            if (k_tiles_left == 1)
                return end(odd);
            advance(odd, even);
        }
    }
};

#endif
#endif
