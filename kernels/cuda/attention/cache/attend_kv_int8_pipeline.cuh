/*
 * attend_kv_int8_pipeline.cuh - inside attend_kv_int8.cu: which keys a warp has, and the ring that brings
 * them.
 *
 * A unit is some keys of one sequence, for a group of heads; the warps of a block take them in
 * turns, 32 at a time.  A block computes units that lie a grid apart.  Its warps ask for what they
 * need some steps ahead, across units, so that memory never waits for a unit to begin or end.  To
 * know where a unit's keys lie takes two reads, one after the other; so the lanes of a warp look up
 * 32 units at once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_CACHE_ATTEND_KV_INT8_PIPELINE_CUH
#define FT_KERNELS_CUDA_ATTENTION_CACHE_ATTEND_KV_INT8_PIPELINE_CUH

#include "kernels/cuda/attention/cache/attend_kv.cuh"
#include "kernels/cuda/ptx/tma.cuh"

enum {
    WARPS = 8,
    THREADS = 32 * WARPS,
    HEADS = 8,   /* of queries, that a unit is for at most */
    WIDTH = 128, /* elements, bytes of a head */
    STEP = 32,   /* keys that a warp takes at once: the next ones are the next warp's */
    STRIDE = WARPS * STEP,
    UNIT_SHIFT = 9,      /* a unit has 2^9 keys, or twice as many, and so on: ... */
    MOST_UNITS = 15,     /* ... no row has more units */
    SLOT = WIDTH + 4,    /* floats: elements, the largest score, the sum */
    TILE = STEP * WIDTH, /* bytes of the keys of a step */
    STAGE = 2 * TILE,    /* keys and values; scales lie apart */
    MOST_STAGES = 3
};

/* Boxes of STEP rows of the cache. */
typedef struct codes_maps {
    CUtensorMap keys, values;
} codes_maps;

/* ---- The keys of a row ---------------------------------------------------------------------- */

/*
 * The row is cut at multiples of 2^shift keys; what is left behind the last whole piece is part of
 * the last unit, or one token more would cost another one.  This unit has the keys from `begin` to
 * before `end`, as far as the row sees them.
 */
typedef struct share {
    int count; /* of units */
    int begin, end;
    int first, last; /* keys of the row */
} share;

static __device__ __forceinline__ share share_of(const ft_attend_job &a, int position, int unit)
{
    int first = ft_attend_first_key(a, position), last = position, shift = UNIT_SHIFT;
    while (((last + 1) >> shift) - (first >> shift) > MOST_UNITS)
        shift++;
    int count = max(((last + 1) >> shift) - (first >> shift), 1);
    int begin = ((first >> shift) + unit) << shift;
    int end = unit == count - 1 ? last + 1 : begin + (1 << shift);
    return share{ count, begin, end, first, last };
}

/* The steps of this warp begin at base, base + STRIDE, ... before end. */
typedef struct span {
    int base, end;
} span;

static __device__ __forceinline__ span span_of(const share &s)
{
    int base = s.begin + (int) threadIdx.x / 32 * STEP;
    int skipped = max(s.first - base, 0) / STRIDE * STRIDE;
    base += skipped;
    if (base + STEP <= s.first)
        base += STRIDE;
    return span{ base, s.end };
}

/* ---- Units ---------------------------------------------------------------------------------- */

typedef struct unit {
    int share;
    int group, kv_head, first_head, heads; /* a group of `heads` that read kv_head */
    uint32_t sequence;                     /* which has one row: its own number */
} unit;

static __device__ __forceinline__ unit unit_of(const ft_attend_job &a, uint32_t index)
{
    unit u;
    uint32_t rest = index / (uint32_t) a.groups;
    u.group = (int) (index % (uint32_t) a.groups);
    u.sequence = rest % (uint32_t) a.sequences;
    u.share = (int) (rest / (uint32_t) a.sequences); /* those that few sequences have are last */
    u.kv_head = u.group % a.kv_heads;
    int from = u.group / a.kv_heads * HEADS;
    u.first_head = u.kv_head * a.group + from;
    u.heads = min(a.group - from, HEADS);
    return u;
}

static __device__ __forceinline__ uint32_t units_of(const ft_attend_job &a)
{
    return (uint32_t) a.sequences * (uint32_t) (a.groups * a.shares);
}

/* 32 units of a block, a lane each. */
typedef struct roll {
    uint32_t first; /* that of lane l is l grids further */
    unit u;
    int position;  /* of its query */
    uint32_t row;  /* of the cache: where this warp's first step is */
    uint32_t live; /* bits: units in which there is something to compute ... */
    uint32_t busy; /* ... and for this warp */
} roll;

static __device__ __forceinline__ uint32_t row_of(const ft_attend_job &a, const int32_t *pages,
                                                  int kv_head, int base)
{
    return (uint32_t) ft_cache_find(pages, (size_t) base, (size_t) kv_head, (size_t) a.kv_heads);
}

static __device__ __forceinline__ roll look_up(const ft_attend_job &a, uint32_t first)
{
    roll r = { first };
    uint32_t index = first + threadIdx.x % 32 * gridDim.x;
    bool live = false, busy = false;
    if (index < units_of(a)) {
        r.u = unit_of(a, index);
        ft_attend_task task = ft_attend_take(a, r.u.sequence);
        share s = share_of(a, task.position, r.u.share);
        live = task.rows > 0 && r.u.share < s.count;
        span steps = span_of(s);
        busy = live && steps.base < steps.end;
        r.position = task.position;
        if (busy)
            r.row = row_of(a, task.pages, r.u.kv_head, steps.base);
    }
    r.live = __ballot_sync(~0u, live);
    r.busy = __ballot_sync(~0u, busy);
    return r;
}

static __device__ __forceinline__ int from_lane(int value, int lane)
{
    return __shfl_sync(~0u, value, lane);
}

/* The unit of a lane. */
static __device__ __forceinline__ unit unit_at(const roll &r, int lane)
{
    return unit{ from_lane(r.u.share, lane),   from_lane(r.u.group, lane),
                 from_lane(r.u.kv_head, lane), from_lane(r.u.first_head, lane),
                 from_lane(r.u.heads, lane),   (uint32_t) from_lane((int) r.u.sequence, lane) };
}

/* The first bit from `lane` on, or 32. */
static __device__ __forceinline__ int next_bit(uint32_t bits, int lane)
{
    uint32_t left = lane < 32 ? bits >> lane : 0;
    return left != 0 ? lane + __ffs((int) left) - 1 : 32;
}

/* ---- The walk ------------------------------------------------------------------------------- */

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900

/* What is asked for next, and where the step after that is. */
struct walk {
    roll units;
    int lane; /* of the roll; 32: nothing is left */
    int base, end, last;
    uint32_t row, next;
    const int32_t *pages;
    int kv_head;

    __device__ __forceinline__ void peek(const ft_attend_job &a)
    {
        if (base + STRIDE < end)
            next = row_of(a, pages, kv_head, base + STRIDE);
    }
    /* To the first unit, from `from` on, in which this warp has a step. */
    __device__ __forceinline__ void enter(const ft_attend_job &a, int from)
    {
        lane = next_bit(units.busy, from);
        while (lane == 32) {
            uint32_t first = units.first + 32 * gridDim.x;
            if (first >= units_of(a))
                return;
            units = look_up(a, first);
            lane = next_bit(units.busy, 0);
        }
        unit u = unit_at(units, lane);
        share s = share_of(a, from_lane(units.position, lane), u.share);
        span steps = span_of(s);
        base = steps.base;
        end = steps.end;
        last = s.last;
        row = (uint32_t) from_lane((int) units.row, lane);
        pages = a.pages + (size_t) u.sequence * a.most_pages;
        kv_head = u.kv_head;
        peek(a);
    }
    __device__ __forceinline__ void advance(const ft_attend_job &a)
    {
        base += STRIDE;
        if (base >= end)
            return enter(a, lane + 1);
        row = next;
        peek(a);
    }
};

/* ---- The ring ------------------------------------------------------------------------------- */

/* A warp's ring: one lane fills it, all read it. */
struct ring {
    char *stages;
    float *scales; /* [stages, 2, STEP] */
    uint64_t *full;
    int count, slot;
    unsigned parity;
    uint64_t policy;
    walk ahead;

    /* Ask for what is next, if there is any. */
    __device__ __forceinline__ void ask(const ft_attend_job &a, const codes_maps &maps, int into)
    {
        if (ahead.lane == 32)
            return;
        if (threadIdx.x % 32 == 0) {
            uint64_t *barrier = &full[into];
            char *stage = stages + into * STAGE;
            float *scale = scales + into * 2 * STEP;
            ft_barrier_expect(barrier, STAGE + 2 * STEP * sizeof(float));
            ft_load_box(stage, &maps.keys, barrier, (int) ahead.row, 0, policy);
            ft_load_bulk(scale, a.key_scales + ahead.row, STEP * sizeof(float), barrier, policy);
            ft_load_bulk(scale + STEP, a.value_scales + ahead.row, STEP * sizeof(float), barrier,
                         policy);
            ft_load_box(stage + TILE, &maps.values, barrier, (int) ahead.row, 0, policy);
        }
        __syncwarp();
        ahead.advance(a);
    }
    /* What is asked for before the predecessor has ended must not be its work: the newest key. */
    __device__ __forceinline__ void open(const ft_attend_job &a, const codes_maps &maps)
    {
        if (threadIdx.x % 32 == 0) {
            for (int i = 0; i < count; i++)
                ft_barrier_init(&full[i], 1);
            ft_barriers_ready();
        }
        __syncwarp();
        policy = ft_policy_passing();
        ahead.units = look_up(a, blockIdx.x);
        ahead.enter(a, 0);
        for (int i = 0; i < count; i++) {
            if (ahead.lane < 32 && ahead.base + STEP > ahead.last)
                ft_wait_for_predecessor();
            ask(a, maps, i);
        }
    }
    __device__ __forceinline__ void wait()
    {
        ft_barrier_wait(&full[slot], parity);
    }
    /* All lanes have read the stage. */
    __device__ __forceinline__ void release(const ft_attend_job &a, const codes_maps &maps)
    {
        __syncwarp();
        ask(a, maps, slot);
        if (++slot == count) {
            slot = 0;
            parity ^= 1;
        }
    }
};

#endif
#endif
