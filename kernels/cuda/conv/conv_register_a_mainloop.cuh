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
    HELD_STEPS = BLOCKS_RUN / BLOCKS_STEP,
    HELD_BARRIER = 1, /* barriers 1 and 2, one per warpgroup */
    HELD_AHEAD = 3    /* orders the two warpgroups */
};

#ifdef FT_HAS_WGMMA

/* ---- Weights -------------------------------------------------------------------------------- */

/*
 * The first of a lane's two output channels of the tile: rows g and g + 8 of its warp's 16 are
 * consecutive channels, as in conv_output_of().
 */
__device__ __forceinline__ int held_output()
{
    return (int) threadIdx.x / 32 * 16 + (int) threadIdx.x % 32 / 4 * 2;
}

/*
 * Where a lane finds its part of any K tile: byte offset in the weights of the K tile, and its
 * first output channel. The asm hides the values from the compiler, which would recompute them for
 * each K tile otherwise.
 */
struct held_lane {
    int codes, output;

    __device__ __forceinline__ held_lane(int panel)
    {
        int t = (int) threadIdx.x % 4;
        output = held_output();
        codes = output / BLOCKS_PANEL * panel + t * 128 + output % 4 * 4 +
                (output % BLOCKS_PANEL / 4 ^ t) * 16;
        asm volatile("" : "+r"(codes), "+r"(output));
    }
};

/*
 * A lane's part of a K tile as loaded: quantized weights of its two output channels, scales, and
 * optional zero points.
 */
template <class FORM> struct held_codes {
    static constexpr int blocks = HELD_STEPS * FORM::bits / 4;
    ft_bits<2> word[blocks];
    __half2 scale;
    uint16_t zero;

    __device__ __forceinline__ void fetch(const held_lane &lane, const char *codes,
                                          const char *scales, const char *zeros)
    {
#pragma unroll
        for (int i = 0; i < blocks; i++)
            word[i] = *(const ft_bits<2> *) (codes + i * BLOCKS_BLOCK + (lane.codes ^ i % 2 * 64));
        scale = *(const __half2 *) (scales + 2 * lane.output);
        if (zeros != NULL)
            zero = *(const uint16_t *) (zeros + lane.output);
    }
};

template <class FORM> using held_unpacker = blocks_unpacker<FORM::bits, FORM::kind>;

/*
 * A lane's part of a K tile, dequantized: the A operand of each MMA of 16 columns, and the scales.
 */
template <class FORM> struct held_weights {
    uint32_t w[HELD_STEPS][2][4];
    float scale[2];

    __device__ __forceinline__ void unpack(const held_codes<FORM> &codes,
                                           const held_unpacker<FORM> &unpacker)
    {
        constexpr int blocks = FORM::bits / 4; /* per K step of 32 columns */
        scale[0] = __low2float(codes.scale);
        scale[1] = __high2float(codes.scale);
#pragma unroll
        for (int step = 0; step < HELD_STEPS; step++) {
            uint32_t pair[2][4];
#pragma unroll
            for (int i = 0; i < blocks; i++)
#pragma unroll
                for (int j = 0; j < 2; j++)
                    if constexpr (FORM::bits == 4)
                        unpacker.nibbles(pair[j], codes.word[step].word[j], j);
                    else
                        unpacker.bytes(pair[j] + 2 * i, codes.word[step * blocks + i].word[j], j);
#pragma unroll
            for (int i = 0; i < 8; i++)
                w[step][i / 4][i % 4] = pair[i % 2][i / 2];
        }
    }
    /*
     * To be called after the wait for the MMAs: until then these read the registers asynchronously,
     * which the compiler does not know.
     */
    __device__ __forceinline__ void settle()
    {
#pragma unroll
        for (int i = 0; i < HELD_STEPS * 8; i++)
            asm volatile("" : "+r"(w[i / 8][i / 4 % 2][i % 4]));
    }
};

/* ---- Consumer ------------------------------------------------------------------------------- */

template <class FORM> struct held_worker {
    const conv_product &p;
    held_shared<FORM> s;
    held_ring<FORM> codes, x; /* pipeline states of the next K tile to unpack, and to multiply */
    const held_lane lane;
    held_codes<FORM> fetched; /* of the next K tile to unpack */
    held_unpacker<FORM> unpacker;
    held_part<FORM::halves> part;
    int run, left;   /* current K tile of the work tile; remaining K tiles of all work tiles */
    int grouped = 0; /* K tiles of the current group before this one */
    bool are_there = false; /* the windows of the next K tile to multiply have arrived */
    int one, two;           /* distances of windows to the second and third 32 bytes of K */
    uint32_t upper; /* upper half of the window descriptors; the lower half holds the address */
    float bias[2];
    float sum[FORM::windows / 2]; /* a lane's, of its channels and windows 8j + 2t, 8j + 2t + 1 */
    float total[FORM::windows / 2] = {};

    __device__ __forceinline__ held_worker(const held_shared<FORM> &s, const conv_product &p)
        : p(p), s(s), codes(s.codes()), x(s.x()), lane(FORM::panel), part(p, held_runs(p)),
          run(part.first), left(part.left(p, held_runs(p)))
    {
        int apart = FORM::windows * p.line / 16; /* stride of boxes */
        one = p.line == 32 ? apart : 2;
        two = p.line == 32 ? 2 * apart : p.line == 64 ? apart : 4;
        upper = (uint32_t) (conv_operand(s.at, p.line) >> 32);
    }
    /*
     * Called after the first MMA of a split, which does not accumulate: the split may begin inside
     * a group.
     */
    __device__ __forceinline__ void join_group()
    {
        if constexpr (FORM::halves)
            grouped = part.first % p.group_runs;
    }
    __device__ __forceinline__ void fetch_bias()
    {
        int output = conv_place_of(p, part.tile).output + held_output();
#pragma unroll
        for (int i = 0; i < 2; i++)
            bias[i] =
                p.t.bias != NULL && output + i < p.t.outputs ? __ldg(&p.t.bias[output + i]) : 0.0f;
    }
    /* Loads the weights early where registers allow, because shared memory has high latency. */
    __device__ __forceinline__ void fetch()
    {
        codes.wait();
        fetched.fetch(lane, s.codes_of(codes), s.scales_of(codes),
                      p.t.blocks.zero != NULL ? s.zeros_of(codes) : NULL);
    }
    /* Unpacks the next K tile; `more`: others follow. */
    __device__ __forceinline__ void unpack_next(held_weights<FORM> &weights, bool more)
    {
        if (!FORM::ahead)
            fetch();
        if (p.t.blocks.zero != NULL)
            unpacker.set(fetched.zero);
        weights.unpack(fetched, unpacker);
        __syncwarp();
        codes.release();
        codes.advance();
        if (FORM::ahead && more)
            fetch();
    }
    /* Issues the MMAs of a K tile; the caller waits for them. */
    __device__ __forceinline__ void multiply(const held_weights<FORM> &weights)
    {
        const uint32_t windows = ft_shared_address(s.x_of(x)) >> 4;
        if (!are_there)
            x.wait();
        ft_wgmma_begin();
#pragma unroll
        for (int step = 0; step < HELD_STEPS; step++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                ft_wgmma_halves_held<FORM::windows, FORM::kind == BLOCKS_BF16>(
                    sum, weights.w[step][i],
                    (uint64_t) upper << 32 | (windows + step / 2 * (FORM::x_step / 16) +
                                              (step % 2 == 1 ? two : 0) + (i == 1 ? one : 0)),
                    step + i > 0 || grouped > 0);
        ft_wgmma_commit();
    }
    /*
     * Waits for the MMAs of a K tile. The last K tile of a group adds the scaled sums to the total.
     */
    __device__ __forceinline__ void add(held_weights<FORM> &weights)
    {
        ft_wgmma_wait<0>();
        ft_wgmma_settle(sum);
        weights.settle();
        x.release();
        x.advance();
        are_there = x.is_full(); /* tested before the wait, because the answer has latency */
        if (++grouped == p.group_runs || run + 1 == part.end) {
            grouped = 0;
#pragma unroll
            for (int i = 0; i < FORM::windows / 2; i++)
                total[i] = fmaf(weights.scale[i % 4 / 2], sum[i], total[i]);
        }
    }
    /* NCHW epilogue. */
    __device__ __forceinline__ void put_planes(const conv_place &place)
    {
        int team = (int) threadIdx.x / CONV_TEAM, warp = (int) threadIdx.x % CONV_TEAM / 32;
        conv_put<FORM>(((conv_laid *) s.results_of(team))[warp], p, place.output + 64 * team,
                       place.run, place.window, total);
    }
    /* NHWC epilogue for any activation and any number of channels. */
    __device__ __forceinline__ void put_any_pixels(const conv_place &place)
    {
        int team = (int) threadIdx.x / CONV_TEAM, warp = (int) threadIdx.x % CONV_TEAM / 32;
        int output = place.output + 64 * team, window = place.window + (int) threadIdx.x % 32;
        conv_laid &laid = ((conv_laid *) s.results_of(team))[warp];
#pragma unroll 1
        for (int from = 0; from < FORM::windows / CONV_LAID; from++, window += CONV_LAID) {
            conv_lay<FORM>(laid, total, from);
            __syncwarp();
            if (p.activates) {
                conv_activate<FORM>(laid, p, output);
                __syncwarp();
            }
            if (window < p.run)
                put_window(laid, (size_t) (place.run * p.run + window), output + 16 * warp);
            __syncwarp();
        }
    }
    /* Writes the warp's 16 output channels of a lane's window. */
    __device__ __forceinline__ void put_window(const conv_laid &laid, size_t window, int output)
    {
        int lane = (int) threadIdx.x % 32;
        size_t at = window * (unsigned) p.t.outputs + (unsigned) output;
#pragma unroll 1
        for (int first = 0; first < 16; first += 8) {
            float value[8];
#pragma unroll
            for (int i = 0; i < 8; i++) {
                int row = first / 2 + i / 2 + i % 2 * 8; /* conv_output_of() */
                conv_numbers numbers = conv_numbers_of<FORM>(p, output + first + i);
                value[i] = conv_value<FORM>(p, numbers,
                                            laid[row][(lane / 4 ^ row % 4 * 2) * 4 + lane % 4]);
            }
            if (p.eights && output + first < p.t.outputs)
                ft_store_as<FORM::dtype, 8>(p.t.y, at + first, value);
            for (int i = 0; i < 8 && !p.eights; i++)
                if (output + first + i < p.t.outputs)
                    ft_store_as<FORM::dtype, 1>(p.t.y, at + first + i, &value[i]);
        }
    }
    /* Fast NHWC epilogue: a window has 128 bytes in shared memory, swizzled for TMA. */
    __device__ __forceinline__ void put_pixels(const conv_place &place)
    {
        int team = (int) threadIdx.x / CONV_TEAM, warp = (int) threadIdx.x % CONV_TEAM / 32;
        int g = (int) threadIdx.x % 32 / 4, t = (int) threadIdx.x % 4;
        bool first = threadIdx.x % CONV_TEAM == 0;
        char *results = s.results_of(team);
        if (first)
            ft_stores_read();
        ft_team_wait(HELD_BARRIER + team, CONV_TEAM);
#pragma unroll
        for (int i = 0; i < FORM::windows / 2; i++)
            total[i] += bias[i % 4 / 2];
        conv_to_range(p, total);
#pragma unroll
        for (int j = 0; j < 2; j++) {
            int window = 2 * t + j, chunk = (2 * warp + g / 4) ^ window;
            char *to = results + window * 128 + chunk * 16 + g % 4 * 4;
#pragma unroll
            for (int i = 0; i < FORM::windows / 8; i++)
                *(uint32_t *) (to + i * 1024) =
                    ft_pack_halves<FORM::dtype>(total[4 * i + j], total[4 * i + 2 + j]);
        }
        ft_store_ready();
        ft_team_wait(HELD_BARRIER + team, CONV_TEAM);
        if (first && place.output + 64 * team < p.t.outputs)
            ft_store_cube(results, &p.y, 2 * (place.output + 64 * team), place.window, place.run);
    }
    /*
     * Split-K: sends the partial sums to the warpgroup that finishes the tile, or receives the
     * other half and writes the results.
     */
    __device__ __forceinline__ void finish_half()
    {
        const held_meeting<FORM> meeting(p, s.results_of(0), s.barriers(), part.round);
        if (!meeting.finishes(part.half))
            return meeting.send(total);
        meeting.receive(total);
        put_pixels(conv_place_of(p, part.tile));
        if (left > 1 && meeting.thread == 0)
            meeting.give_back();
    }
    /* After a K tile: goes on to the next one, or finishes the work tile. */
    __device__ __forceinline__ void finish_run()
    {
        if (++run < part.end)
            return;
        if constexpr (FORM::to == HELD_PLANES)
            put_planes(conv_place_of(p, part.tile));
        else if constexpr (FORM::halves)
            finish_half();
        else if constexpr (FORM::to == HELD_ANY_PIXELS)
            put_any_pixels(conv_place_of(p, part.tile));
        else
            put_pixels(conv_place_of(p, part.tile));
#pragma unroll
        for (int i = 0; i < FORM::windows / 2; i++)
            total[i] = 0.0f;
        part.advance(p, held_runs(p));
        run = part.first;
        join_group();
        if (left > 1)
            fetch_bias();
    }
    /*
     * Finishes a K tile while the next one, whose weights are ready, is being multiplied. Then
     * unpacks the one after it to the registers of the first.
     */
    __device__ __forceinline__ void advance(held_weights<FORM> &weights,
                                            const held_weights<FORM> &next)
    {
        add(weights);
        multiply(next);
        finish_run();
        if (left > 2)
            unpack_next(weights, left > 3);
        left--;
    }
    __device__ __forceinline__ void end(held_weights<FORM> &weights)
    {
        add(weights);
        finish_run();
        if (threadIdx.x % CONV_TEAM == 0)
            ft_stores_done();
    }
    /*
     * Issues the first MMAs. With split-K the warpgroup that sends its sums starts before the one
     * that waits for sums, and stays ahead: its sums are in flight while the other one still
     * multiplies.
     */
    __device__ __forceinline__ void begin(const held_weights<FORM> &weights)
    {
        bool leads = false, follows = false;
        if constexpr (FORM::halves)
            if (p.halves == 2) {
                follows = ft_warp_of_block() / (CONV_TEAM / 32) == part.half;
                leads = !follows;
            }
        if (follows)
            ft_team_wait(HELD_AHEAD, CONV_WORKERS);
        multiply(weights);
        if (leads)
            ft_team_arrive(HELD_AHEAD, CONV_WORKERS);
        join_group();
    }
    __device__ __forceinline__ void work()
    {
        held_weights<FORM> even, odd;
        if (FORM::ahead)
            fetch();
        unpack_next(even, left > 1);
        ft_wait_for_predecessor(); /* the predecessor may still read the previous contents of y */
        begin(even);
        if (left > 1)
            unpack_next(odd, left > 2);
        fetch_bias();
        if (FORM::halves && p.halves == 2)
            ft_cluster_wait(); /* both CTAs of the cluster have started */
        for (;;) {
            if (left == 1)
                return end(even);
            advance(even, odd);
            if (left == 1)
                return end(odd);
            advance(odd, even);
        }
    }
};

#endif
#endif
