/*
 * blocks_wgmma.cuh - the weights and tokens of blocks_wgmma.cu: what a block has of them, and their
 * way there.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_BLOCKS_WGMMA_CUH
#define FT_KERNELS_CUDA_BLOCKS_WGMMA_CUH

#include "kernels/cuda/blocks_tiles.cuh"
#include "kernels/cuda/tma.cuh"
#include "kernels/cuda/wgmma_halves.cuh"

enum {
    WGMMA_TEAM = 128, /* threads of a warpgroup */
    WGMMA_WORKERS = 2 * WGMMA_TEAM,
    WGMMA_COLUMNS = 64,    /* of a stage */
    WGMMA_LINE = 128,      /* bytes: WGMMA_COLUMNS of a token, or what lies together of a panel */
    WGMMA_STAGES = 16,     /* most */
    WGMMA_ROOM = 226 << 10 /* shared memory that a block takes at most */
};

/*
 * A block's tile: weights of 4 * TILES panels by TOKENS.  A warp has a panel, with a warp of the
 * other warpgroup or, where a warpgroup's instructions have two tiles of 64 weights, alone.
 */
template <int BITS, blocks_kind KIND, int TILES, int TOKENS> struct wgmma_form {
    static constexpr int bits = BITS, tiles = TILES, tokens = TOKENS;
    static constexpr blocks_kind kind = KIND;
    static constexpr int panels = 4 * TILES, weights = panels * BLOCKS_PANEL;
    static constexpr int panel = WGMMA_COLUMNS * BLOCKS_PANEL * bits / 8;
    static constexpr int lines = panel / WGMMA_LINE, x_bytes = TOKENS * WGMMA_LINE;
    static constexpr int scales_at = panels * panel + x_bytes, zeros_at = scales_at + weights * 2;
    static constexpr int stage = (zeros_at + weights + 1023) / 1024 * 1024;
    static constexpr int sums = TILES * TOKENS / 2; /* of a lane */
    static constexpr int totals = WGMMA_WORKERS * sums * 4;
    static constexpr int fitting = (WGMMA_ROOM - totals) / stage;
    static constexpr int stages = fitting < WGMMA_STAGES ? fitting : WGMMA_STAGES;
    static constexpr int totals_at = stages * stage, barriers_at = totals_at + totals;
    static constexpr int shared = barriers_at + stages * 16;
};

/*
 * Of a launch.  An item is a tile, of a part's panels and of the tokens, or some of its stretches;
 * their sums, [stretches, m, columns], are added up by ft_cuda_blocks_add_up().
 */
typedef struct wgmma_args {
    CUtensorMap x, w[FT_CUDA_PARTS];
    blocks_shape all;
    int first[FT_CUDA_PARTS]; /* tile of panels of each part, beyond the last one: their number */
    int token_tiles, items, share, shares; /* stretches of an item, items of a tile */
    float *sums;                           /* NULL: each item has all stretches of its tile */
} wgmma_args;

#ifdef FT_HAS_WGMMA

/* ---- Places --------------------------------------------------------------------------------- */

/* An item: its part, the part's first panel, the first token and the columns of it. */
typedef struct wgmma_item {
    int part, panel, token, column, end;
} wgmma_item;

/* Neighbouring tiles share weights. */
template <class FORM>
__device__ __forceinline__ wgmma_item wgmma_item_of(const wgmma_args &a, int number)
{
    int tile = number / a.shares, panels = tile / a.token_tiles;
    wgmma_item item = {};
    item.column = (number - tile * a.shares) * a.share * BLOCKS_STRETCH;
    item.end = item.column + a.share * BLOCKS_STRETCH;
    item.end = item.end < a.all.k ? item.end : a.all.k;
    item.token = (tile - panels * a.token_tiles) * FORM::tokens;
#pragma unroll
    for (int i = 1; i < FT_CUDA_PARTS; i++)
        item.part = panels >= a.first[i] ? i : item.part;
    item.panel = (panels - a.first[item.part]) * FORM::panels;
    return item;
}

/* A position in the ring: its slot, and the parity of the round. */
template <class FORM> struct wgmma_position {
    int slot = 0;
    unsigned parity = 0;

    __device__ __forceinline__ void advance()
    {
        if (++slot == FORM::stages) {
            slot = 0;
            parity ^= 1;
        }
    }
};

template <class FORM> struct wgmma_ring {
    char *stages;
    uint64_t *full, *empty;

    __device__ __forceinline__ wgmma_ring(char *shared)
        : stages(shared), full((uint64_t *) (shared + FORM::barriers_at)),
          empty(full + FORM::stages)
    {
    }
    /* By one thread, before all others begin. */
    __device__ __forceinline__ void set_up() const
    {
        for (int i = 0; i < FORM::stages; i++) {
            ft_barrier_init(&full[i], 2);
            ft_barrier_init(&empty[i], WGMMA_WORKERS / 32);
        }
        ft_barriers_ready();
    }
};

/* ---- Loading: by two threads ---------------------------------------------------------------- */

/* One loads codes, which belong to no predecessor, and does little else: it must be fast. */
template <class FORM>
__device__ __forceinline__ void wgmma_load_codes(const wgmma_ring<FORM> &ring, const wgmma_args &a)
{
    wgmma_position<FORM> at;
    for (int number = (int) blockIdx.x; number < a.items; number += (int) gridDim.x) {
        wgmma_item item = wgmma_item_of<FORM>(a, number);
        const CUtensorMap *map = &a.w[item.part];
        int line = item.column * (4 * FORM::bits) / WGMMA_LINE;
        for (int left = item.end - item.column; left > 0; left -= WGMMA_COLUMNS, at.advance()) {
            uint64_t *full = &ring.full[at.slot];
            ft_barrier_wait(&ring.empty[at.slot], at.parity ^ 1);
            ft_barrier_expect(full, FORM::panels * FORM::panel);
            ft_load_cube(ring.stages + at.slot * FORM::stage, map, full, 0, line, item.panel);
            line += FORM::lines;
        }
    }
}

/* The other one tokens, and scales and zeros where a stage begins a run. */
template <class FORM>
__device__ __forceinline__ void wgmma_load_tokens(const wgmma_ring<FORM> &ring,
                                                  const ft_cuda_blocks &p, const wgmma_args &a)
{
    wgmma_position<FORM> at;
    ft_wait_for_predecessor();
    for (int number = (int) blockIdx.x; number < a.items; number += (int) gridDim.x) {
        wgmma_item item = wgmma_item_of<FORM>(a, number);
        const ft_cuda_blocks_part &part = p.part[item.part];
        int padded = a.all.padded_rows[item.part], row = item.panel * BLOCKS_PANEL;
        int rows = padded - row < FORM::weights ? padded - row : FORM::weights;
        int zeros = part.zero != NULL ? rows : 0;
        for (int column = item.column; column < item.end; column += WGMMA_COLUMNS, at.advance()) {
            char *stage = ring.stages + at.slot * FORM::stage;
            uint64_t *full = &ring.full[at.slot];
            bool begins = column % BLOCKS_RUN == 0;
            ft_barrier_wait(&ring.empty[at.slot], at.parity ^ 1);
            ft_barrier_expect(full, FORM::x_bytes + (begins ? 2 * rows + zeros : 0));
            ft_load_box(stage + FORM::panels * FORM::panel, &a.x, full, item.token, column * 2);
            if (!begins)
                continue;
            size_t index = (size_t) blocks_group_of(a.all, column) * padded + row;
            ft_load_bulk(stage + FORM::scales_at, part.scale + index, 2 * rows, full);
            if (zeros > 0)
                ft_load_bulk(stage + FORM::zeros_at, part.zero + index, zeros, full);
        }
    }
    ft_let_successor_begin();
}

/* ---- Instructions --------------------------------------------------------------------------- */

/*
 * c [64, N] = (add ? c : 0) + a . b^T of 16 columns; a as ft_mma_halves() has it, and it must stay
 * as it is until the product is finished.
 */
template <int N, bool bf16>
__device__ __forceinline__ void wgmma_multiply(float (&c)[N / 2], const uint32_t (&a)[4],
                                               uint64_t b, int add);

#define WGMMA_C16(m, c) FT_C8(m, c, 0), FT_C8(m, c, 8)
#define WGMMA_NAMES_16 FT_NAMES_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define WGMMA_MULTIPLY(N, BF16, TYPE, NAMES, LIST, A, B, ADD)                                      \
    template <>                                                                                    \
    __device__ __forceinline__ void wgmma_multiply<N, BF16>(                                       \
        float(&c)[N / 2], const uint32_t(&a)[4], uint64_t b, int add)                              \
    {                                                                                              \
        asm volatile("{\n\t.reg .pred add;\n\tsetp.ne.b32 add, " ADD ", 0;\n\t"                    \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" NAMES    \
                     "}, {" A "}, " B ", add, 1, 1, 0;\n\t}"                                       \
                     : LIST("+f", c)                                                               \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));              \
    }
#define WGMMA_MULTIPLY_ALL(BF16, TYPE)                                                             \
    WGMMA_MULTIPLY(16, BF16, TYPE, FT_NAMES_8, FT_C8_ALL, "%8, %9, %10, %11", "%12", "%13")        \
    WGMMA_MULTIPLY(32, BF16, TYPE, WGMMA_NAMES_16, WGMMA_C16, "%16, %17, %18, %19", "%20", "%21")  \
    WGMMA_MULTIPLY(64, BF16, TYPE, FT_NAMES_0, FT_C32, "%32, %33, %34, %35", "%36", "%37")         \
    WGMMA_MULTIPLY(128, BF16, TYPE, FT_NAMES_0 ", " FT_NAMES_1, FT_C64, "%64, %65, %66, %67",      \
                   "%68", "%69")
WGMMA_MULTIPLY_ALL(false, "f16")
WGMMA_MULTIPLY_ALL(true, "bf16")
#undef WGMMA_MULTIPLY_ALL
#undef WGMMA_MULTIPLY
#undef WGMMA_NAMES_16
#undef WGMMA_C16

#endif
#endif
