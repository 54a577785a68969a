/*
 * conv_register_a.cuh - implicit-GEMM convolution with group-wise quantized weights on sm_90a,
 * where the weights are the A operand in registers: y^T = w . windows^T.
 *
 * As in groupwise_wgmma.cu, quantized weights go from a pipeline to registers and are dequantized
 * there. conv_wgmma.cuh dequantizes them to shared memory instead, which costs one write and two
 * more reads. Windows are the B operand and are loaded as in conv_wgmma.cuh. Each of two consumer
 * warpgroups has 64 output channels of a tile; both use the same windows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_CONV_CONV_REGISTER_A_CUH
#define FT_KERNELS_CUDA_CONV_CONV_REGISTER_A_CUH

#include "kernels/cuda/gemm/groupwise/groupwise.cuh"
#include "kernels/cuda/conv/conv_register_a_split_k.cuh"
#include "kernels/cuda/conv/conv_wgmma_load.cuh"

/*
 * Pipelines have few stages. All CTAs start at the same time, and with long pipelines the first
 * loads of one CTA queue behind later loads of others: 8 stages took up to a tenth longer than 3 or
 * 4.
 */
enum {
    HELD_ROOM = 227 << 10, /* maximum shared memory of a CTA */
    HELD_RUN = 2,          /* K blocks per K tile of 128 columns */
    HELD_RUNS = 4,         /* maximum stages, ... */
    HELD_HALF_RUNS = 3,    /* ... and with split-K */
};

/*
 * Epilogues: NHWC with any activation or any number of output channels takes longer. HELD_HALVES:
 * NHWC with split-K, conv_register_a_split_k.cuh.
 */
typedef enum held_results { HELD_PIXELS, HELD_ANY_PIXELS, HELD_PLANES, HELD_HALVES } held_results;

/* Kernel traits: bits of the weights, dtype of the windows, windows of a tile. */
template <int BITS, ft_dtype DTYPE, int WINDOWS, held_results TO> struct held_form {
    static constexpr int bits = BITS, windows = WINDOWS;
    static constexpr ft_dtype dtype = DTYPE;
    static constexpr held_results to = TO;
    static constexpr bool planes = false, held = true, halves = TO == HELD_HALVES;
    static constexpr bool ahead = BITS == 4; /* weights are loaded one K tile ahead */
    static constexpr blocks_kind kind = DTYPE == FT_F16 ? BLOCKS_F16 : BLOCKS_BF16;
    static constexpr int threads = CONV_WORKERS + CONV_TEAM;
    static constexpr int panel = BLOCKS_RUN * BLOCKS_PANEL * bits / 8;
    static constexpr int x_step = WINDOWS * CONV_STEP, x_run = HELD_RUN * x_step;
    static constexpr int codes = CONV_HELD_OUTPUTS / BLOCKS_PANEL * panel;
    static constexpr int beside = CONV_HELD_OUTPUTS * 4; /* scales and zero points */
    static constexpr int results = TO == HELD_PIXELS   ? WINDOWS * 128
                                   : TO == HELD_HALVES ? WINDOWS * 256 /* sums, then results */
                                                       : 4 * CONV_LAY; /* per warpgroup */
    static constexpr int barriers = 32;                                /* per K tile */
    static constexpr int meeting = halves ? 32 : 0;                    /* barriers of split-K */
    static constexpr int fitting =
        (HELD_ROOM - 2 * results - meeting) / (x_run + codes + beside + barriers);
    static constexpr int most = halves ? HELD_HALF_RUNS : HELD_RUNS;
    static constexpr int runs = fitting < most ? fitting : most;
    static constexpr int codes_at = runs * x_run, results_at = codes_at + runs * codes;
    static constexpr int beside_at = results_at + 2 * results;
    static constexpr int barriers_at = beside_at + runs * beside;
    static constexpr int meeting_at = barriers_at + runs * barriers;
    static constexpr int shared = meeting_at + meeting;
};

#ifdef FT_HAS_WGMMA

__device__ __forceinline__ int held_runs(const conv_product &p)
{
    return (p.steps + HELD_RUN - 1) / HELD_RUN;
}

/* ---- Pipelines ------------------------------------------------------------------------------ */

/* Pipeline of one operand, one K tile per stage: the next stage, and its phase. */
template <class FORM> struct held_ring {
    uint64_t *full, *empty;
    int slot = 0;
    unsigned parity = 0;

    __device__ __forceinline__ explicit held_ring(char *barriers)
        : full((uint64_t *) barriers), empty(full + FORM::runs)
    {
    }
    /* Called by one thread before all others start. */
    __device__ __forceinline__ void set_up() const
    {
        for (int i = 0; i < FORM::runs; i++) {
            ft_barrier_init(&full[i], 1);
            ft_barrier_init(&empty[i], CONV_WORKERS / 32);
        }
    }
    __device__ __forceinline__ void advance()
    {
        if (++slot == FORM::runs) {
            slot = 0;
            parity ^= 1;
        }
    }
    /* Producer acquire. */
    __device__ __forceinline__ void wait_empty() const
    {
        ft_barrier_wait(&empty[slot], parity ^ 1);
    }
    /* Announces `bytes` bytes for the current stage; returns the barrier that counts them. */
    __device__ __forceinline__ uint64_t *expect(unsigned bytes) const
    {
        ft_barrier_expect(&full[slot], bytes);
        return &full[slot];
    }
    __device__ __forceinline__ void wait() const
    {
        ft_barrier_wait(&full[slot], parity);
    }
    /* Whether the stage is full, without waiting. */
    __device__ __forceinline__ bool is_full() const
    {
        return ft_barrier_is_past(&full[slot], parity);
    }
    /* Consumer release; all lanes of the warp must have read the stage. */
    __device__ __forceinline__ void release() const
    {
        if (threadIdx.x % 32 == 0)
            ft_barrier_arrive(&empty[slot]);
    }
};

/* Shared memory of a CTA. */
template <class FORM> struct held_shared {
    char *at;

    __device__ __forceinline__ held_ring<FORM> x() const
    {
        return held_ring<FORM>(at + FORM::barriers_at);
    }
    __device__ __forceinline__ held_ring<FORM> codes() const
    {
        return held_ring<FORM>(at + FORM::barriers_at + FORM::runs * 16);
    }
    __device__ __forceinline__ char *x_of(const held_ring<FORM> &ring) const
    {
        return at + ring.slot * FORM::x_run;
    }
    __device__ __forceinline__ char *codes_of(const held_ring<FORM> &ring) const
    {
        return at + FORM::codes_at + ring.slot * FORM::codes;
    }
    __device__ __forceinline__ char *scales_of(const held_ring<FORM> &ring) const
    {
        return at + FORM::beside_at + ring.slot * FORM::beside;
    }
    __device__ __forceinline__ char *zeros_of(const held_ring<FORM> &ring) const
    {
        return scales_of(ring) + 2 * CONV_HELD_OUTPUTS;
    }
    __device__ __forceinline__ char *results_of(int team) const
    {
        return at + FORM::results_at + team * FORM::results;
    }
    __device__ __forceinline__ held_barriers *barriers() const
    {
        return (held_barriers *) (at + FORM::meeting_at);
    }
};

/* ---- Producers: two warps ------------------------------------------------------------------- */

/*
 * A producer is a warp of which one elected lane issues the copies: values that are uniform in the
 * warp stay in uniform registers, where TMA instructions need them. A single thread took as long
 * per box as the tensor cores.
 */
__device__ __forceinline__ bool held_speaks()
{
    uint32_t elected;
    asm volatile("{\n\t.reg .pred p;\n\telect.sync _|p, 0xffffffff;\n\tselp.u32 %0, 1, 0, p;\n\t}"
                 : "=r"(elected));
    return elected != 0;
}

/* Weights depend on no predecessor. */
template <class FORM>
__device__ __forceinline__ void held_load_weights(const held_shared<FORM> &s, const conv_product &p)
{
    auto ring = s.codes();
    int runs = held_runs(p);
    for (held_part<FORM::halves> part(p, runs); part.tile < p.tiles; part.advance(p, runs)) {
        int output = conv_place_of(p, part.tile).output, grouped = 0;
        unsigned rows = (unsigned) min(CONV_HELD_OUTPUTS, p.padded - output);
        unsigned zeros = p.t.blocks.zero != NULL ? rows : 0;
        size_t index = (size_t) output; /* index of the group's scales */
        if (part.first > 0) {
            grouped = part.first % p.group_runs;
            index += (size_t) (part.first / p.group_runs) * (unsigned) p.padded;
        }
        for (int run = part.first; run < part.end; run++, ring.advance()) {
            ring.wait_empty();
            if (held_speaks()) {
                uint64_t *full = ring.expect(FORM::codes + 2 * rows + zeros);
                ft_load_cube(s.codes_of(ring), &p.w, full, 0, run * (FORM::panel / 128),
                             output / BLOCKS_PANEL);
                ft_load_bulk(s.scales_of(ring), p.t.blocks.scale + index, 2 * rows, full);
                if (zeros > 0)
                    ft_load_bulk(s.zeros_of(ring), p.t.blocks.zero + index, zeros, full);
            }
            if (++grouped == p.group_runs) {
                grouped = 0;
                index += (unsigned) p.padded;
            }
        }
    }
}

/* Loads the two K blocks of a K tile. */
template <class FORM>
__device__ __forceinline__ void held_load_run(char *to, const conv_product &p,
                                              const conv_place &place, conv_walk &walk, int run,
                                              uint64_t *full)
{
    if (p.order != CONV_PIXELS) {
        if (held_speaks())
#pragma unroll
            for (int i = 0; i < HELD_RUN; i++)
                ft_load_cube(to + i * FORM::x_step, &p.x, full, (run * HELD_RUN + i) * CONV_STEP,
                             place.window, place.run);
        return;
    }
    for (int i = 0; i < HELD_RUN * p.boxes; i++) {
        conv_walk at = walk;
        if (held_speaks())
            conv_load_tap(to + i * p.box_bytes, p, at, full);
        conv_walk_on(p, walk);
    }
}

template <class FORM>
__device__ __forceinline__ void held_load_windows(const held_shared<FORM> &s, const conv_product &p)
{
    auto ring = s.x();
    int runs = held_runs(p);
    ft_wait_for_predecessor();
    for (held_part<FORM::halves> part(p, runs); part.tile < p.tiles; part.advance(p, runs)) {
        conv_place place = conv_place_of(p, part.tile);
        conv_walk walk = {};
        if (p.order == CONV_PIXELS) {
            walk = conv_walk_of(p, place.run * p.run + place.window);
            if (part.first > 0)
                conv_walk_to(p, walk, part.first * HELD_RUN * p.boxes);
        }
        for (int run = part.first; run < part.end; run++, ring.advance()) {
            ring.wait_empty();
            if (held_speaks())
                ring.expect(FORM::x_run);
            held_load_run<FORM>(s.x_of(ring), p, place, walk, run, &ring.full[ring.slot]);
        }
    }
    ft_let_successor_begin();
}

#endif
#endif
