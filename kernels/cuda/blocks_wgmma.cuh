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
    WGMMA_TEAM = 128,       /* threads of a warpgroup */
    WGMMA_LINE = 128,       /* bytes: 64 columns of a token, or what lies together of a panel */
    WGMMA_RUNS = 16,        /* that a ring has room for, at most */
    WGMMA_SPLIT_ROWS = 128, /* scratch has room for the stretches of so many tokens */
    WGMMA_ROOM = 226 << 10, /* shared memory that a block takes at most */
};

/*
 * A block's tile is 64 weights for each of its TEAMS by TOKENS; its rings are of runs.  One team
 * more only loads, and gives up registers to the workers: all that the block has are shared out.
 */
template <int BITS, blocks_kind KIND, int TEAMS, int TOKENS> struct wgmma_form {
    static constexpr int bits = BITS, teams = TEAMS, tokens = TOKENS;
    static constexpr blocks_kind kind = KIND;
    static constexpr int workers = TEAMS * WGMMA_TEAM, threads = workers + WGMMA_TEAM;
    static constexpr int registers = TEAMS == 2 ? 232 : 152, others = TEAMS == 2 ? 40 : 56;
    static constexpr int weights = TEAMS * 64, panels = weights / BLOCKS_PANEL;
    static constexpr int panel = BLOCKS_RUN * BLOCKS_PANEL * bits / 8, lines = panel / WGMMA_LINE;
    static constexpr int x_box = TOKENS * WGMMA_LINE, x_run = BLOCKS_RUN * 2 / WGMMA_LINE * x_box;
    static constexpr int codes = panels * panel, beside = weights * 4; /* scales and zeros */
    static constexpr int totals = weights * TOKENS * 4, barriers = 32; /* of a run */
    static constexpr int fitting = (WGMMA_ROOM - totals) / (x_run + codes + beside + barriers);
    static constexpr int runs = fitting < WGMMA_RUNS ? fitting : WGMMA_RUNS;
    static constexpr int codes_at = runs * x_run, beside_at = codes_at + runs * codes;
    static constexpr int totals_at = beside_at + runs * beside;
    static constexpr int barriers_at = totals_at + totals, shared = barriers_at + runs * barriers;
    /* Microseconds that a block takes for a stretch, as seen on an H200. */
    static constexpr double stretch_time = TEAMS == 3 ? 1.6 + 0.02 * TOKENS : 1.2 + 0.019 * TOKENS;
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

/* ---- Host ----------------------------------------------------------------------------------- */

/* Bytes of the sums of all stretches. */
static inline size_t wgmma_sums_bytes(size_t m, size_t panels, size_t stretches)
{
    return m * panels * BLOCKS_PANEL * stretches * sizeof(float);
}

/* Tiles of panels of a part. */
template <class FORM> static inline int wgmma_columns_of(const blocks_shape &all, int part)
{
    return (int) ft_cover((size_t) all.padded_rows[part] / BLOCKS_PANEL, FORM::panels);
}

/* Stretches of an item, and how long the product takes, microseconds. */
typedef struct wgmma_plan {
    int share;
    double time;
} wgmma_plan;

/*
 * Such that all are soonest done.  As seen on an H200: a block's time for a stretch, and that of
 * the sums, written and read, and of the kernel that adds them up.
 */
template <class FORM>
static inline wgmma_plan wgmma_plan_of(const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    blocks_shape all = blocks_shape_of(p);
    size_t bytes = wgmma_sums_bytes(p->m, (size_t) all.panels, (size_t) all.stretches);
    bool may_split = p->m <= WGMMA_SPLIT_ROWS && p->scratch_bytes >= bytes;
    int tiles = 0;
    for (int i = 0; i < p->parts; i++)
        tiles += wgmma_columns_of<FORM>(all, i) * (int) ft_cover(p->m, FORM::tokens);
    wgmma_plan best = {};
    for (int share = all.stretches; share > 0; share--) {
        unsigned items = (unsigned) (tiles * ((all.stretches + share - 1) / share));
        double adding = share < all.stretches ? 4.0 + (double) bytes / 2.5e6 : 0.0;
        unsigned rounds = ft_cover(items, (unsigned) chip->multiprocessors);
        double time = rounds * share * FORM::stretch_time + adding;
        if (best.share == 0 || (may_split && time < best.time))
            best = { share, time };
    }
    return best;
}

template <class FORM>
static inline int wgmma_args_init(wgmma_args *a, const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    *a = (wgmma_args){};
    a->all = blocks_shape_of(p);
    a->token_tiles = (int) ft_cover(p->m, FORM::tokens);
    int columns = 0, status = ft_map_codes(&a->x, p->x, p->m, 2 * p->k, FORM::tokens);
    for (int i = 0; i < FT_CUDA_PARTS; i++) {
        a->first[i] = columns;
        if (i >= p->parts || status != 0)
            continue;
        size_t panels = (size_t) a->all.padded_rows[i] / BLOCKS_PANEL;
        size_t bytes = (size_t) a->all.panel_bytes;
        cuuint64_t size[3] = { WGMMA_LINE, bytes / WGMMA_LINE, panels };
        cuuint64_t strides[2] = { WGMMA_LINE, bytes };
        cuuint32_t box[3] = { WGMMA_LINE, FORM::lines, FORM::panels };
        status = ft_map_bytes(&a->w[i], p->part[i].w, 3, size, strides, box);
        columns += wgmma_columns_of<FORM>(a->all, i);
    }
    a->share = wgmma_plan_of<FORM>(chip, p).share;
    a->shares = (a->all.stretches + a->share - 1) / a->share;
    a->items = a->token_tiles * columns * a->shares;
    a->sums = a->shares > 1 ? (float *) p->scratch : NULL;
    return status;
}

/* After the kernel: the sums of stretches, where there are any. */
static inline int wgmma_add_up(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p,
                               const wgmma_args *a)
{
    tiles_shape shape = tiles_shape_of(p);
    shape.sums = a->sums;
    return a->sums == NULL ? 0 : ft_cuda_blocks_add_up(chip, stream, p, &shape);
}

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

/* Runs of one operand: the next one's slot, and the parity of the round. */
template <class FORM> struct wgmma_ring {
    uint64_t *full, *empty;
    int slot = 0;
    unsigned parity = 0;

    __device__ __forceinline__ explicit wgmma_ring(char *barriers)
        : full((uint64_t *) barriers), empty(full + FORM::runs)
    {
    }
    /* By one thread, before all others begin. */
    __device__ __forceinline__ void set_up() const
    {
        for (int i = 0; i < FORM::runs; i++) {
            ft_barrier_init(&full[i], 1);
            ft_barrier_init(&empty[i], FORM::workers / 32);
        }
    }
    __device__ __forceinline__ void advance()
    {
        if (++slot == FORM::runs) {
            slot = 0;
            parity ^= 1;
        }
    }
    /* Wait until it may be filled with so many bytes, which count on what is returned. */
    __device__ __forceinline__ uint64_t *fill(unsigned bytes) const
    {
        ft_barrier_wait(&empty[slot], parity ^ 1);
        ft_barrier_expect(&full[slot], bytes);
        return &full[slot];
    }
    __device__ __forceinline__ void wait() const
    {
        ft_barrier_wait(&full[slot], parity);
    }
    /* The warp, all of whose lanes are here, has read it. */
    __device__ __forceinline__ void release() const
    {
        if (threadIdx.x % 32 == 0)
            ft_barrier_arrive(&empty[slot]);
    }
};

/* A block's shared memory. */
template <class FORM> struct wgmma_shared {
    char *at;

    __device__ __forceinline__ wgmma_ring<FORM> x() const
    {
        return wgmma_ring<FORM>(at + FORM::barriers_at);
    }
    __device__ __forceinline__ wgmma_ring<FORM> codes() const
    {
        return wgmma_ring<FORM>(at + FORM::barriers_at + FORM::runs * 16);
    }
    __device__ __forceinline__ char *x_of(const wgmma_ring<FORM> &ring) const
    {
        return at + ring.slot * FORM::x_run;
    }
    __device__ __forceinline__ char *codes_of(const wgmma_ring<FORM> &ring) const
    {
        return at + FORM::codes_at + ring.slot * FORM::codes;
    }
    __device__ __forceinline__ char *scales_of(const wgmma_ring<FORM> &ring) const
    {
        return at + FORM::beside_at + ring.slot * FORM::beside;
    }
    __device__ __forceinline__ char *zeros_of(const wgmma_ring<FORM> &ring) const
    {
        return scales_of(ring) + 2 * FORM::weights;
    }
    /* A thread's own: the next one is FORM::workers further. */
    __device__ __forceinline__ float4 *totals() const
    {
        return (float4 *) (at + FORM::totals_at) + threadIdx.x;
    }
};

/* ---- Loading: by two threads ---------------------------------------------------------------- */

/* One loads weights, which belong to no predecessor. */
template <class FORM>
__device__ __forceinline__ void wgmma_load_weights(const wgmma_shared<FORM> &s,
                                                   const ft_cuda_blocks &p, const wgmma_args &a)
{
    auto ring = s.codes();
    for (int number = (int) blockIdx.x; number < a.items; number += (int) gridDim.x) {
        wgmma_item item = wgmma_item_of<FORM>(a, number);
        const ft_cuda_blocks_part &part = p.part[item.part];
        int padded = a.all.padded_rows[item.part], row = item.panel * BLOCKS_PANEL;
        int rows = padded - row < FORM::weights ? padded - row : FORM::weights;
        int zeros = part.zero != NULL ? rows : 0;
        for (int column = item.column; column < item.end; column += BLOCKS_RUN, ring.advance()) {
            size_t index = (size_t) blocks_group_of(a.all, column) * padded + row;
            uint64_t *full = ring.fill(FORM::codes + 2 * rows + zeros);
            ft_load_cube(s.codes_of(ring), &a.w[item.part], full, 0,
                         column / BLOCKS_RUN * FORM::lines, item.panel);
            ft_load_bulk(s.scales_of(ring), part.scale + index, 2 * rows, full);
            if (zeros > 0)
                ft_load_bulk(s.zeros_of(ring), part.zero + index, zeros, full);
        }
    }
}

template <class FORM>
__device__ __forceinline__ void wgmma_load_tokens(const wgmma_shared<FORM> &s, const wgmma_args &a)
{
    auto ring = s.x();
    ft_wait_for_predecessor();
    for (int number = (int) blockIdx.x; number < a.items; number += (int) gridDim.x) {
        wgmma_item item = wgmma_item_of<FORM>(a, number);
        for (int column = item.column; column < item.end; column += BLOCKS_RUN, ring.advance()) {
            uint64_t *full = ring.fill(FORM::x_run);
#pragma unroll
            for (int i = 0; i < FORM::x_run / FORM::x_box; i++)
                ft_load_box(s.x_of(ring) + i * FORM::x_box, &a.x, full, item.token,
                            2 * column + i * WGMMA_LINE);
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
