/*
 * attend_kv_int8_pipeline.cuh - inside attend_kv_int8.cu: the keys of a warp, and the pipeline that
 * loads them.
 *
 * A unit is a range of keys of one sequence, for a group of heads. The warps of a CTA process its
 * key tiles of 32 keys round-robin. A CTA computes the units that lie a grid apart. Its warps issue
 * loads some tiles ahead, across units, so that memory never idles between units. Finding the
 * address of a unit's keys takes two dependent reads, so the lanes of a warp look up 32 units at
 * once.
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
    HEADS = 8,   /* maximum number of query heads of a unit */
    WIDTH = 128, /* elements, and bytes, of a head */
    STEP = 32, /* keys that a warp processes at once; the following tile belongs to the next warp */
    STRIDE = WARPS * STEP,
    UNIT_SHIFT = 9,      /* a unit has 2^9 keys; longer rows double this ... */
    MOST_UNITS = 15,     /* ... until they have at most this many units */
    SLOT = WIDTH + 4,    /* floats of a partial result: elements, maximum score, sum */
    TILE = STEP * WIDTH, /* bytes of the keys of a tile */
    STAGE = 2 * TILE,    /* keys and values; the scales are stored separately */
    MOST_STAGES = 3
};

/* TMA boxes of KEY_TILE rows of the cache. */
typedef struct codes_maps {
    CUtensorMap keys, values;
} codes_maps;

/* ---- Keys of a unit ------------------------------------------------------------------------- */

/*
 * The row is cut at multiples of 2^shift keys. The remainder after the last complete unit belongs
 * to that unit; otherwise one more token could cost another unit. This unit has the keys begin ..
 * end - 1, as far as they are visible to the row.
 */
typedef struct share {
    int count; /* number of units of the row */
    int begin, end;
    int first, last; /* visible keys of the row */
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

/* The key tiles of this warp begin at base, base + STRIDE, ... before end. */
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
    int split;
    int group, kv_head, first_head, heads; /* `heads` query heads that share kv_head */
    uint32_t sequence;                     /* each sequence has one row, with the same index */
} unit;

static __device__ __forceinline__ unit unit_of(const ft_attend_job &a, uint32_t index)
{
    unit u;
    uint32_t rest = index / (uint32_t) a.groups;
    u.group = (int) (index % (uint32_t) a.groups);
    u.sequence = rest % (uint32_t) a.sequences;
    u.split = (int) (rest / (uint32_t) a.sequences); /* units of long sequences are last */
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

/* 32 units of a CTA, one per lane. */
typedef struct roll {
    uint32_t first; /* lane l holds the unit l grids further */
    unit u;
    int position;  /* position of its query */
    uint32_t row;  /* row of the cache with this warp's first key tile */
    uint32_t live; /* bit mask: units with work ... */
    uint32_t busy; /* ... and units with work for this warp */
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
        share s = share_of(a, task.position, r.u.split);
        live = task.rows > 0 && r.u.split < s.count;
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
    return unit{ from_lane(r.u.split, lane),   from_lane(r.u.group, lane),
                 from_lane(r.u.kv_head, lane), from_lane(r.u.first_head, lane),
                 from_lane(r.u.heads, lane),   (uint32_t) from_lane((int) r.u.sequence, lane) };
}

/* The first set bit from `lane` on, or 32. */
static __device__ __forceinline__ int next_bit(uint32_t bits, int lane)
{
    uint32_t left = lane < 32 ? bits >> lane : 0;
    return left != 0 ? lane + __ffs((int) left) - 1 : 32;
}

/* ---- Key tile iterator ---------------------------------------------------------------------- */

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900

/* The next tile to load, and the location of the one after it. */
struct walk {
    roll units;
    int lane; /* lane of the unit in `units`; 32: no work left */
    int base, end, last;
    uint32_t row, next;
    const int32_t *pages;
    int kv_head;

    __device__ __forceinline__ void peek(const ft_attend_job &a)
    {
        if (base + STRIDE < end)
            next = row_of(a, pages, kv_head, base + STRIDE);
    }
    /* Advances to the first unit, from `from` on, that has a tile for this warp. */
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
        share s = share_of(a, from_lane(units.position, lane), u.split);
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

/* ---- Pipeline ------------------------------------------------------------------------------- */

/* The pipeline of one warp: one lane issues the loads, all lanes read. */
struct ring {
    char *stages;
    float *scales; /* [stages, 2, STEP] */
    uint64_t *full;
    int count, slot;
    unsigned parity;
    uint64_t policy;
    walk ahead;

    /* Issues the loads of the next tile, if there is one. */
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
    /*
     * Prologue. Loads issued before the predecessor has ended must not read what it writes: the
     * newest key.
     */
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
    /* Releases the stage after all lanes have read it. */
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
