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
#include "kernels/cuda/ptx/pipeline.cuh"
#include "kernels/cuda/ptx/tma.cuh"

enum {
    WARPS = 8,
    THREADS = 32 * WARPS,
    MAX_HEADS = 8,  /* maximum number of query heads of a unit */
    HEAD_DIM = 128, /* elements, and bytes, of a head */
    KEY_TILE =
        32, /* keys that a warp processes at once; the following tile belongs to the next warp */
    CTA_STRIDE = WARPS * KEY_TILE,
    SPLIT_SHIFT = 9,                  /* a unit has 2^9 keys; longer rows double this ... */
    MAX_SPLITS = 15,                  /* ... until they have at most this many units */
    PARTIAL = HEAD_DIM + 4,           /* floats of a partial result: elements, maximum score, sum */
    TILE_BYTES = KEY_TILE * HEAD_DIM, /* bytes of the keys of a tile */
    STAGE_BYTES = 2 * TILE_BYTES,     /* keys and values; the scales are stored separately */
    MAX_STAGES = 3
};

/* TMA boxes of KEY_TILE rows of the cache. */
typedef struct kv_tensor_maps {
    CUtensorMap keys, values;
} kv_tensor_maps;

/* ---- Keys of a unit ------------------------------------------------------------------------- */

/*
 * The row is cut at multiples of 2^shift keys. The remainder after the last complete unit belongs
 * to that unit; otherwise one more token could cost another unit. This unit has the keys begin ..
 * end - 1, as far as they are visible to the row.
 */
typedef struct unit_keys {
    int count; /* number of units of the row */
    int begin, end;
    int first, last; /* visible keys of the row */
} unit_keys;

static __device__ __forceinline__ unit_keys unit_keys_of(const ft_attend_kv_params &a, int position,
                                                         int unit)
{
    int first = ft_first_visible_key(a, position), last = position, shift = SPLIT_SHIFT;
    while (((last + 1) >> shift) - (first >> shift) > MAX_SPLITS)
        shift++;
    int count = max(((last + 1) >> shift) - (first >> shift), 1);
    int begin = ((first >> shift) + unit) << shift;
    int end = unit == count - 1 ? last + 1 : begin + (1 << shift);
    return unit_keys{ count, begin, end, first, last };
}

/* The key tiles of this warp begin at base, base + STRIDE, ... before end. */
typedef struct tile_range {
    int base, end;
} tile_range;

static __device__ __forceinline__ tile_range warp_tiles_of(const unit_keys &s)
{
    int base = s.begin + (int) threadIdx.x / 32 * KEY_TILE;
    int skipped_keys = max(s.first - base, 0) / CTA_STRIDE * CTA_STRIDE;
    base += skipped_keys;
    if (base + KEY_TILE <= s.first)
        base += CTA_STRIDE;
    return tile_range{ base, s.end };
}

/* ---- Units ---------------------------------------------------------------------------------- */

typedef struct unit {
    int split;
    int group, kv_head, first_head, heads; /* `heads` query heads that share kv_head */
    uint32_t sequence;                     /* each sequence has one row, with the same index */
} unit;

static __device__ __forceinline__ unit unit_from_index(const ft_attend_kv_params &a, uint32_t index)
{
    unit u;
    uint32_t rest = index / (uint32_t) a.head_groups;
    u.group = (int) (index % (uint32_t) a.head_groups);
    u.sequence = rest % (uint32_t) a.sequences;
    u.split = (int) (rest / (uint32_t) a.sequences); /* units of long sequences are last */
    u.kv_head = u.group % a.kv_heads;
    int from = u.group / a.kv_heads * MAX_HEADS;
    u.first_head = u.kv_head * a.group + from;
    u.heads = min(a.group - from, MAX_HEADS);
    return u;
}

static __device__ __forceinline__ uint32_t unit_count(const ft_attend_kv_params &a)
{
    return (uint32_t) a.sequences * (uint32_t) (a.head_groups * a.splits);
}

/* 32 units of a CTA, one per lane. */
typedef struct unit_batch {
    uint32_t first; /* lane l holds the unit l grids further */
    unit u;
    int position;    /* position of its query */
    uint32_t row;    /* row of the cache with this warp's first key tile */
    uint32_t active; /* bit mask: units with work ... */
    uint32_t busy;   /* ... and units with work for this warp */
} unit_batch;

static __device__ __forceinline__ uint32_t row_of(const ft_attend_kv_params &a,
                                                  const int32_t *pages, int kv_head, int base)
{
    return (uint32_t) ft_cache_token_row(pages, (size_t) base, (size_t) kv_head,
                                         (size_t) a.kv_heads);
}

static __device__ __forceinline__ unit_batch lookup_units(const ft_attend_kv_params &a,
                                                          uint32_t first)
{
    unit_batch r = { first };
    uint32_t index = first + threadIdx.x % 32 * gridDim.x;
    bool active = false, busy = false;
    if (index < unit_count(a)) {
        r.u = unit_from_index(a, index);
        ft_query_tile query_tile = ft_query_tile_at(a, r.u.sequence);
        unit_keys s = unit_keys_of(a, query_tile.position, r.u.split);
        active = query_tile.rows > 0 && r.u.split < s.count;
        tile_range steps = warp_tiles_of(s);
        busy = active && steps.base < steps.end;
        r.position = query_tile.position;
        if (busy)
            r.row = row_of(a, query_tile.pages, r.u.kv_head, steps.base);
    }
    r.active = __ballot_sync(~0u, active);
    r.busy = __ballot_sync(~0u, busy);
    return r;
}

static __device__ __forceinline__ int broadcast(int value, int lane)
{
    return __shfl_sync(~0u, value, lane);
}

/* The unit of a lane. */
static __device__ __forceinline__ unit unit_of_lane(const unit_batch &r, int lane)
{
    return unit{ broadcast(r.u.split, lane),   broadcast(r.u.group, lane),
                 broadcast(r.u.kv_head, lane), broadcast(r.u.first_head, lane),
                 broadcast(r.u.heads, lane),   (uint32_t) broadcast((int) r.u.sequence, lane) };
}

/* The first set bit from `lane` on, or 32. */
static __device__ __forceinline__ int next_set_bit(uint32_t bits, int lane)
{
    uint32_t left = lane < 32 ? bits >> lane : 0;
    return left != 0 ? lane + __ffs((int) left) - 1 : 32;
}

/* ---- Key tile iterator ---------------------------------------------------------------------- */

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900

/* The next tile to load, and the location of the one after it. */
struct tile_iterator {
    unit_batch units;
    int lane; /* lane of the unit in `units`; 32: no work left */
    int base, end, last;
    uint32_t row, next;
    const int32_t *pages;
    int kv_head;

    __device__ __forceinline__ void lookup_next(const ft_attend_kv_params &a)
    {
        if (base + CTA_STRIDE < end)
            next = row_of(a, pages, kv_head, base + CTA_STRIDE);
    }
    /* Advances to the first unit, from `from` on, that has a tile for this warp. */
    __device__ __forceinline__ void enter_unit(const ft_attend_kv_params &a, int from)
    {
        lane = next_set_bit(units.busy, from);
        while (lane == 32) {
            uint32_t first = units.first + 32 * gridDim.x;
            if (first >= unit_count(a))
                return;
            units = lookup_units(a, first);
            lane = next_set_bit(units.busy, 0);
        }
        unit u = unit_of_lane(units, lane);
        unit_keys s = unit_keys_of(a, broadcast(units.position, lane), u.split);
        tile_range steps = warp_tiles_of(s);
        base = steps.base;
        end = steps.end;
        last = s.last;
        row = (uint32_t) broadcast((int) units.row, lane);
        pages = a.pages + (size_t) u.sequence * a.max_pages;
        kv_head = u.kv_head;
        lookup_next(a);
    }
    __device__ __forceinline__ void advance(const ft_attend_kv_params &a)
    {
        base += CTA_STRIDE;
        if (base >= end)
            return enter_unit(a, lane + 1);
        row = next;
        lookup_next(a);
    }
};

/* ---- Pipeline ------------------------------------------------------------------------------- */

/* The pipeline of one warp: one lane issues the loads, all lanes read. */
struct kv_pipeline {
    char *stages;
    float *scales; /* [stages, 2, STEP] */
    uint64_t *full;
    int count;
    ft_pipeline_state state;
    uint64_t policy;
    tile_iterator next_tile;

    /* Issues the loads of the next tile, if there is one. */
    __device__ __forceinline__ void issue_loads(const ft_attend_kv_params &a,
                                                const kv_tensor_maps &maps, int target)
    {
        if (next_tile.lane == 32)
            return;
        if (threadIdx.x % 32 == 0) {
            uint64_t *barrier = &full[target];
            char *stage = stages + target * STAGE_BYTES;
            float *scale = scales + target * 2 * KEY_TILE;
            ft_mbarrier_arrive_expect_tx(barrier, STAGE_BYTES + 2 * KEY_TILE * sizeof(float));
            ft_tma_load_2d(stage, &maps.keys, barrier, (int) next_tile.row, 0, policy);
            ft_bulk_load(scale, a.key_scales + next_tile.row, KEY_TILE * sizeof(float), barrier,
                         policy);
            ft_bulk_load(scale + KEY_TILE, a.value_scales + next_tile.row, KEY_TILE * sizeof(float),
                         barrier, policy);
            ft_tma_load_2d(stage + TILE_BYTES, &maps.values, barrier, (int) next_tile.row, 0,
                           policy);
        }
        __syncwarp();
        next_tile.advance(a);
    }
    /*
     * Prologue. Loads issued before the predecessor has ended must not read what it writes: the
     * newest key.
     */
    __device__ __forceinline__ void prologue(const ft_attend_kv_params &a,
                                             const kv_tensor_maps &maps)
    {
        if (threadIdx.x % 32 == 0) {
            for (int i = 0; i < count; i++)
                ft_mbarrier_init(&full[i], 1);
            ft_mbarrier_fence_init();
        }
        __syncwarp();
        policy = ft_l2_evict_first();
        next_tile.units = lookup_units(a, blockIdx.x);
        next_tile.enter_unit(a, 0);
        for (int i = 0; i < count; i++) {
            if (next_tile.lane < 32 && next_tile.base + KEY_TILE > next_tile.last)
                ft_pdl_wait();
            issue_loads(a, maps, i);
        }
    }
    __device__ __forceinline__ void consumer_wait()
    {
        ft_mbarrier_wait(&full[state.stage_index], state.phase);
    }
    /* Releases the stage after all lanes have read it. */
    __device__ __forceinline__ void consumer_release(const ft_attend_kv_params &a,
                                                     const kv_tensor_maps &maps)
    {
        __syncwarp();
        issue_loads(a, maps, state.stage_index);
        state.advance(count);
    }
};

#endif
#endif
