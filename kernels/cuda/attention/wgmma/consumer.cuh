/*
 * consumer.cuh - the consumer warpgroups of attention: 64 queries of a work item each.
 *
 * The QK GEMM of a tile and the PV GEMM of the tile before are issued together. The softmax of the
 * tile runs beside the second one, and beside the GEMMs of other warpgroups. The tile before may be
 * the last one of the previous work item, so that the tensor cores do not idle between two items.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_WGMMA_CONSUMER_CUH
#define FT_KERNELS_CUDA_ATTENTION_WGMMA_CONSUMER_CUH

#include "kernels/cuda/attention/wgmma/output.cuh"
#include "kernels/cuda/attention/wgmma/softmax.cuh"

#ifdef FT_HAS_WGMMA

template <class SHAPE> struct consumer {
    float s[KEYS / 2];              /* scores of a tile, then their weights */
    uint32_t weights[KEYS / 16][4]; /* the same as an operand */
    float acc[SHAPE::width / 2];    /* weights . v */
    softmax_stats rows;             /* of the work item to which s belongs */
    ft_pipeline_state query;        /* work item to which acc belongs */
    ft_pipeline_state key, value;   /* next stages to read */
    int warpgroup, row;             /* first row of the warp in a work item */
};

template <class RING>
static __device__ __forceinline__ void release(RING &ring, ft_pipeline_state *state, int stages)
{
    __syncwarp();
    ft_pipeline_consumer_release(ring, state->stage_index);
    state->advance(stages);
}

/*
 * The warpgroups issue their GEMMs in turns, so that one computes its softmax while the GEMMs of
 * the others run.
 */
template <class SHAPE> static __device__ __forceinline__ void take_turn(int warpgroup)
{
    if (SHAPE::warpgroups > 1)
        ft_named_barrier_sync(SHAPE::warpgroups + 1 + warpgroup, 2 * WARPGROUP);
}

template <class SHAPE> static __device__ __forceinline__ void pass_turn(int warpgroup)
{
    int next = (warpgroup + 1) % SHAPE::warpgroups;
    if (SHAPE::warpgroups > 1)
        ft_named_barrier_arrive(SHAPE::warpgroups + 1 + next, 2 * WARPGROUP);
}

static __device__ __forceinline__ void sync_warpgroup(int warpgroup)
{
    ft_named_barrier_sync(1 + warpgroup, WARPGROUP);
}

/* ---- GEMMs ---------------------------------------------------------------------------------- */

/* Issues s = q . k^T for the queries of a work item and the next keys. */
template <class SHAPE, bool bf16>
static __device__ __forceinline__ void issue_qk(consumer<SHAPE> &c, attention_storage<SHAPE> *m,
                                                const ft_pipeline_state &query)
{
    uint64_t a = ft_wgmma_descriptor(m->query[query.stage_index] + c.warpgroup * BOX_BYTES);
    uint64_t b = ft_wgmma_descriptor(m->key[c.key.stage_index]);
    ft_wgmma_fence();
#pragma unroll
    for (int i = 0; i < SHAPE::width / 16; i++)
        ft_wgmma_f16<KEYS, bf16>(c.s, a + (i / 4 * SHAPE::query_panel + i % 4 * 32) / 16,
                                 b + (i / 4 * KEY_PANEL + i % 4 * 32) / 16, i > 0);
    ft_wgmma_commit();
}

/*
 * Zeroes the values from key `first` of a tile on, which belong to another sequence or to nobody:
 * their weights are 0, but they may be infinite. Each warpgroup does so for itself.
 */
template <class SHAPE>
static __device__ __forceinline__ void zero_values(uint8_t *values, int first, int warpgroup)
{
    for (int i = first * 8 + (int) threadIdx.x % WARPGROUP; i < KEYS * 8; i += WARPGROUP)
#pragma unroll
        for (int panel = 0; panel < SHAPE::panels; panel++)
            *(uint4 *) (values + panel * KEY_PANEL + i * 16) = make_uint4(0, 0, 0, 0);
    ft_fence_proxy_async();
    sync_warpgroup(warpgroup);
}

/* Issues acc += weights . v for the next values, of which `keys` exist. */
template <class SHAPE, bool bf16>
static __device__ __forceinline__ void issue_pv(consumer<SHAPE> &c, attention_storage<SHAPE> *m,
                                                int keys)
{
    uint8_t *values = m->value[c.value.stage_index];
    ft_pipeline_consumer_wait(m->values, c.value);
    if (keys < KEYS)
        zero_values<SHAPE>(values, keys, c.warpgroup);
    uint64_t b = ft_wgmma_descriptor_trans(values, KEY_PANEL);
    ft_wgmma_fence();
#pragma unroll
    for (int i = 0; i < KEYS / 16; i++)
        ft_wgmma_f16_register_a_trans_b<SHAPE::width, bf16>(c.acc, c.weights[i],
                                                            b + i * 16 * ROW_BYTES / 16);
    ft_wgmma_commit();
}

/* Waits for the QK GEMM, behind which `pending` others may be unfinished. */
template <int pending, class SHAPE>
static __device__ __forceinline__ void wait_qk(consumer<SHAPE> &c, attention_storage<SHAPE> *m)
{
    ft_wgmma_wait<pending>();
    ft_wgmma_fence_acc(c.s);
    release(m->keys, &c.key, SHAPE::stages);
}

template <class SHAPE> static __device__ __forceinline__ void wait_pv(consumer<SHAPE> &c)
{
    ft_wgmma_wait<0>();
    ft_wgmma_fence_acc(c.acc);
}

/*
 * Waits for the PV GEMM, after the softmax of the next tile: the branch depends on it, and the
 * compiler moves no wait above a branch.
 */
template <class SHAPE>
static __device__ __forceinline__ void wait_pv_and_rescale(consumer<SHAPE> &c,
                                                           attention_storage<SHAPE> *m,
                                                           const row_rescale &rescale, bool is_last)
{
    ft_wgmma_fence_acc(c.s);
    if (rescale.needed && !is_last) {
        wait_pv(c);
        rescale_rows(c.acc, rescale);
    }
    wait_pv(c);
    release(m->values, &c.value, SHAPE::stages);
}

/* ---- Work items ----------------------------------------------------------------------------- */

template <class SHAPE> static __device__ __forceinline__ void clear_acc(consumer<SHAPE> &c)
{
#pragma unroll
    for (int i = 0; i < SHAPE::width / 2; i++)
        c.acc[i] = 0.0f;
}

template <class SHAPE, bool bf16>
static __device__ __forceinline__ void pack_weights(consumer<SHAPE> &c)
{
#pragma unroll
    for (int i = 0; i < KEYS / 4; i++)
        c.weights[i / 4][i % 4] = pack_f16x2<bf16>(c.s[2 * i], c.s[2 * i + 1]);
}

/* Waits for a work item; whether the warpgroup has queries in it. */
template <class SHAPE>
static __device__ __forceinline__ bool has_queries(attention_storage<SHAPE> *m,
                                                   const ft_pipeline_state &query, int warpgroup)
{
    ft_pipeline_consumer_wait(m->queries, query);
    return BOX_ROWS * warpgroup < m->work[query.stage_index].queries;
}

/* A warpgroup without queries releases what it would have read. */
template <class SHAPE>
static __device__ __forceinline__ void skip(consumer<SHAPE> &c, attention_storage<SHAPE> *m)
{
    const attention_work &w = m->work[c.query.stage_index];
    for (int base = w.first_key; base < w.end_key; base += KEYS) {
        ft_pipeline_consumer_wait(m->keys, c.key);
        take_turn<SHAPE>(c.warpgroup);
        pass_turn<SHAPE>(c.warpgroup);
        release(m->keys, &c.key, SHAPE::stages);
        ft_pipeline_consumer_wait(m->values, c.value);
        release(m->values, &c.value, SHAPE::stages);
    }
    release(m->queries, &c.query, SHAPE::query_slots);
}

/* Waits for the next work item with queries of this warpgroup; false: no work is left. */
template <class SHAPE>
static __device__ __forceinline__ bool find_work(consumer<SHAPE> &c, attention_storage<SHAPE> *m)
{
    while (!has_queries(m, c.query, c.warpgroup)) {
        if (m->work[c.query.stage_index].queries == 0)
            return false;
        skip(c, m);
    }
    return true;
}

/* Stores the result of a work item and releases its queries, which it overwrites. */
template <class SHAPE, bool bf16>
static __device__ __forceinline__ void finish(consumer<SHAPE> &c, attention_storage<SHAPE> *m,
                                              const attention_output &to, const float sum[2])
{
    int slot = c.query.stage_index, row = m->work[slot].row, head = m->work[slot].head,
        queries = m->work[slot].queries;
    sync_warpgroup(c.warpgroup); /* all its warps have read the queries */
    output_chunks<SHAPE> out = normalized_rows<SHAPE, bf16>(
        m->query[slot] + c.warpgroup * BOX_BYTES, sum, c.acc);
    release(m->queries, &c.query, SHAPE::query_slots);
    store_rows<SHAPE>(to, out, (size_t) row, head, c.row, queries);
}

/* The tile of keys whose scores are computed, and the work item to which it belongs. */
typedef struct key_tile {
    ft_pipeline_state query;
    int base, end; /* first key; end of the item's keys */
} key_tile;

template <class SHAPE>
static __device__ __forceinline__ void begin_work(key_tile *tile, consumer<SHAPE> &c,
                                                  const attention_storage<SHAPE> *m)
{
    const attention_work &w = m->work[tile->query.stage_index];
    tile->base = w.first_key;
    tile->end = w.end_key;
    c.rows = softmax_stats{ { -INFINITY, -INFINITY }, { 0.0f, 0.0f } };
}

/* Masks the scores of a tile and turns them into weights. */
template <class SHAPE, class SCORES>
static __device__ __forceinline__ row_rescale softmax(consumer<SHAPE> &c,
                                                      const attention_storage<SHAPE> *m,
                                                      const key_tile &tile, const SCORES &scores)
{
    scores.prepare(c.s, m->work[tile.query.stage_index], c.row, tile.base);
    return softmax_tile<SCORES::may_be_empty>(c.s, &c.rows, scores.scale);
}

/* ---- The loop ------------------------------------------------------------------------------- */

/* The first tile after a pause: nothing runs beside its softmax. */
template <class SHAPE, bool bf16, class SCORES>
static __device__ __forceinline__ void first_tile(consumer<SHAPE> &c, attention_storage<SHAPE> *m,
                                                  const key_tile &tile, const SCORES &scores)
{
    clear_acc(c);
    ft_pipeline_consumer_wait(m->keys, c.key);
    take_turn<SHAPE>(c.warpgroup);
    issue_qk<SHAPE, bf16>(c, m, tile.query);
    pass_turn<SHAPE>(c.warpgroup);
    wait_qk<0>(c, m);
    softmax(c, m, tile, scores);
    pack_weights<SHAPE, bf16>(c);
}

/*
 * A tile, beside the PV GEMM of the tile before, of which `keys` keys exist. If that was the last
 * one of its work item, `sum` are the sums of its rows.
 */
template <class SHAPE, bool bf16, class SCORES>
static __device__ __forceinline__ void
next_tile(consumer<SHAPE> &c, attention_storage<SHAPE> *m, const key_tile &tile,
          const SCORES &scores, const attention_output &to, int keys, const float sum[2])
{
    bool was_last = keys <= KEYS;
    ft_pipeline_consumer_wait(m->keys, c.key);
    take_turn<SHAPE>(c.warpgroup);
    issue_qk<SHAPE, bf16>(c, m, tile.query);
    issue_pv<SHAPE, bf16>(c, m, keys);
    pass_turn<SHAPE>(c.warpgroup);
    wait_qk<1>(c, m);
    row_rescale rescale = softmax(c, m, tile, scores);
    wait_pv_and_rescale(c, m, rescale, was_last);
    pack_weights<SHAPE, bf16>(c);
    if (was_last) {
        finish<SHAPE, bf16>(c, m, to, sum);
        clear_acc(c);
    }
}

/* Processes all work of the CTA. SCORES masks the scores of a tile, and may add to them. */
template <class SHAPE, bool bf16, class SCORES>
static __device__ __forceinline__ void consume(attention_storage<SHAPE> *m, const SCORES &scores,
                                               const attention_output &to, int warpgroup)
{
    consumer<SHAPE> c;
    c.query = c.key = c.value = ft_pipeline_state{ 0, 0 };
    c.warpgroup = warpgroup;
    c.row = BOX_ROWS * warpgroup + (int) threadIdx.x % WARPGROUP / 32 * 16;
    if (warpgroup == SHAPE::warpgroups - 1)
        pass_turn<SHAPE>(warpgroup);
    while (find_work(c, m)) {
        key_tile tile = { c.query };
        begin_work(&tile, c, m);
        first_tile<SHAPE, bf16>(c, m, tile, scores);
        int keys;
        for (;;) {
            const float sum[2] = { c.rows.sum[0], c.rows.sum[1] };
            keys = tile.end - tile.base;
            tile.base += KEYS;
            if (keys <= KEYS) {
                tile.query.advance(SHAPE::query_slots);
#ifdef TRY_NOFLAT
                    break;
#endif
                if (!has_queries(m, tile.query, warpgroup))
                    break;
                begin_work(&tile, c, m);
            }
            next_tile<SHAPE, bf16>(c, m, tile, scores, to, keys, sum);
        }
        issue_pv<SHAPE, bf16>(c, m, keys);
        wait_pv(c);
        release(m->values, &c.value, SHAPE::stages);
        finish<SHAPE, bf16>(c, m, to, c.rows.sum);
    }
}

#endif
#endif
