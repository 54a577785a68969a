/*
 * conv_register_a.cuh - convolutions with weights in blocks on sm_90a that are the left operand of the
 * tensor cores from registers: y^T = w . windows^T.
 *
 * As groupwise_wgmma.cu has products: codes go from a ring to registers and become numbers there.
 * Unpacked to shared memory, as conv_wgmma.cuh has it, they are written once and read twice more.
 * Windows are the right operand, and brought as there.  Each of two teams has 64 outputs of a tile,
 * and both have the same windows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_CONV_CONV_REGISTER_A_CUH
#define FT_KERNELS_CUDA_CONV_CONV_REGISTER_A_CUH

#include "kernels/cuda/gemm/groupwise/groupwise.cuh"
#include "kernels/cuda/conv/conv_register_a_split_k.cuh"
#include "kernels/cuda/conv/conv_wgmma_load.cuh"

/*
 * Rings have room for few runs.  All blocks begin at the same time, and with long rings what one
 * needs first waits behind what another one needs later: 8 took up to a tenth longer than 3 or 4.
 */
enum {
    HELD_ROOM = 227 << 10, /* shared memory that a block takes at most */
    HELD_RUN = 2,          /* steps of a run of 128 columns */
    HELD_RUNS = 4,         /* that a ring has room for, at most, */
    HELD_HALF_RUNS = 3,    /* and of the halves of a tile */
};

/*
 * What results become: pixels with any activation, or any number of outputs, take longer.  Halves:
 * pixels whose sums are of the halves of their runs, conv_register_a_split_k.cuh.
 */
typedef enum held_results { HELD_PIXELS, HELD_ANY_PIXELS, HELD_PLANES, HELD_HALVES } held_results;

/* A kernel: bits of blocks, type of windows, windows of a tile. */
template <int BITS, ft_dtype DTYPE, int WINDOWS, held_results TO> struct held_form {
    static constexpr int bits = BITS, windows = WINDOWS;
    static constexpr ft_dtype dtype = DTYPE;
    static constexpr held_results to = TO;
    static constexpr bool planes = false, held = true, halves = TO == HELD_HALVES;
    static constexpr bool ahead = BITS == 4; /* codes are in registers a run before they are due */
    static constexpr blocks_kind kind = DTYPE == FT_F16 ? BLOCKS_F16 : BLOCKS_BF16;
    static constexpr int threads = CONV_WORKERS + CONV_TEAM;
    static constexpr int panel = BLOCKS_RUN * BLOCKS_PANEL * bits / 8;
    static constexpr int x_step = WINDOWS * CONV_STEP, x_run = HELD_RUN * x_step;
    static constexpr int codes = CONV_HELD_OUTPUTS / BLOCKS_PANEL * panel;
    static constexpr int beside = CONV_HELD_OUTPUTS * 4; /* scales and zeros */
    static constexpr int results = TO == HELD_PIXELS   ? WINDOWS * 128
                                   : TO == HELD_HALVES ? WINDOWS * 256 /* sums, then results */
                                                       : 4 * CONV_LAY; /* a team's */
    static constexpr int barriers = 32;                                /* of a run */
    static constexpr int meeting = halves ? 32 : 0;                    /* barriers of halves */
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

/* ---- Rings ---------------------------------------------------------------------------------- */

/* Runs of one operand: the next one's slot, and the parity of the round. */
template <class FORM> struct held_ring {
    uint64_t *full, *empty;
    int slot = 0;
    unsigned parity = 0;

    __device__ __forceinline__ explicit held_ring(char *barriers)
        : full((uint64_t *) barriers), empty(full + FORM::runs)
    {
    }
    /* By one thread, before all others begin. */
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
    /* Until it may be filled. */
    __device__ __forceinline__ void wait_empty() const
    {
        ft_barrier_wait(&empty[slot], parity ^ 1);
    }
    /* So many bytes, which count on what is returned. */
    __device__ __forceinline__ uint64_t *expect(unsigned bytes) const
    {
        ft_barrier_expect(&full[slot], bytes);
        return &full[slot];
    }
    __device__ __forceinline__ void wait() const
    {
        ft_barrier_wait(&full[slot], parity);
    }
    /* Whether there is nothing to wait for. */
    __device__ __forceinline__ bool is_full() const
    {
        return ft_barrier_is_past(&full[slot], parity);
    }
    /* The warp, all of whose lanes are here, has read it. */
    __device__ __forceinline__ void release() const
    {
        if (threadIdx.x % 32 == 0)
            ft_barrier_arrive(&empty[slot]);
    }
};

/* A block's shared memory. */
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

/* ---- Loading: by two warps ------------------------------------------------------------------ */

/*
 * A loader is a warp of which one lane speaks: what all lanes compute alike is in registers of the
 * warp, where copies want it.  A thread by itself took as long for a box as the tensor cores.
 */
__device__ __forceinline__ bool held_speaks()
{
    uint32_t elected;
    asm volatile("{\n\t.reg .pred p;\n\telect.sync _|p, 0xffffffff;\n\tselp.u32 %0, 1, 0, p;\n\t}"
                 : "=r"(elected));
    return elected != 0;
}

/* Weights belong to no predecessor. */
template <class FORM>
__device__ __forceinline__ void held_load_weights(const held_shared<FORM> &s, const conv_product &p)
{
    auto ring = s.codes();
    int runs = held_runs(p);
    for (held_part<FORM::halves> part(p, runs); part.tile < p.tiles; part.advance(p, runs)) {
        int output = conv_place_of(p, part.tile).output, grouped = 0;
        unsigned rows = (unsigned) min(CONV_HELD_OUTPUTS, p.padded - output);
        unsigned zeros = p.t.blocks.zero != NULL ? rows : 0;
        size_t index = (size_t) output; /* of the group's scales */
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

/* The two steps of a run. */
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
