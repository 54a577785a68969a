/*
 * consumer.cuh - the consumer warpgroups of attention: 64 queries of a work item each.
 *
 * The QK GEMM of a tile and the PV GEMM of the tile before are issued together. The softmax of the
 * tile runs beside the second one, and beside the GEMMs of other warpgroups.
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
    softmax_stats rows;
    ft_pipeline_state query, key, value; /* the next stages to read */
    int warpgroup, row;                  /* row: the warp's first in a work item */
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

/* Issues s = q . k^T for the next keys. */
template <class SHAPE, bool bf16>
static __device__ __forceinline__ void issue_qk(consumer<SHAPE> &c,
                                                const attention_storage<SHAPE> *m)
{
    uint64_t a = ft_wgmma_descriptor(m->query[c.query.stage_index] + c.warpgroup * BOX_BYTES);
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

/* Issues acc += weights . v for the next values. */
template <class SHAPE, bool bf16>
static __device__ __forceinline__ void issue_pv(consumer<SHAPE> &c,
                                                const attention_storage<SHAPE> *m)
{
    uint64_t b = ft_wgmma_descriptor_trans(m->value[c.value.stage_index], KEY_PANEL);
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
static __device__ __forceinline__ void
wait_pv_and_rescale(consumer<SHAPE> &c, attention_storage<SHAPE> *m, const row_rescale &rescale)
{
    ft_wgmma_fence_acc(c.s);
    if (rescale.needed) {
        wait_pv(c);
        rescale_rows(c.acc, rescale);
    }
    wait_pv(c);
    release(m->values, &c.value, SHAPE::stages);
}

/* ---- Work items ----------------------------------------------------------------------------- */

template <class SHAPE> static __device__ __forceinline__ void clear(consumer<SHAPE> &c)
{
    c.rows = softmax_stats{ { -INFINITY, -INFINITY }, { 0.0f, 0.0f } };
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
    for (;;) {
        ft_pipeline_consumer_wait(m->queries, c.query);
        int queries = m->work[c.query.stage_index].queries;
        if (queries == 0)
            return false;
        if (BOX_ROWS * c.warpgroup < queries)
            return true;
        skip(c, m);
    }
}

/* Stores the result of a work item and releases its queries, which it overwrites. */
template <class SHAPE, bool bf16>
static __device__ __forceinline__ void finish(consumer<SHAPE> &c, attention_storage<SHAPE> *m,
                                              const attention_output &to)
{
    int slot = c.query.stage_index, row = m->work[slot].row, head = m->work[slot].head,
        queries = m->work[slot].queries;
    sync_warpgroup(c.warpgroup); /* all its warps have read the queries */
    output_chunks<SHAPE> out =
        normalized_rows<SHAPE, bf16>(m->query[slot] + c.warpgroup * BOX_BYTES, c.rows.sum, c.acc);
    release(m->queries, &c.query, SHAPE::query_slots);
    store_rows<SHAPE>(to, out, (size_t) row, head, c.row, queries);
}

/* Masks the scores of the keys from `base` on and turns them into weights. */
template <class SHAPE, class SCORES>
static __device__ __forceinline__ row_rescale softmax(consumer<SHAPE> &c,
                                                      const attention_storage<SHAPE> *m, int base,
                                                      const SCORES &scores)
{
    scores.prepare(c.s, m->work[c.query.stage_index], c.row, base);
    return softmax_tile<SCORES::may_be_empty>(c.s, &c.rows, scores.scale);
}

/* ---- The loop ------------------------------------------------------------------------------- */

/* The first tile of a work item. */
template <class SHAPE, bool bf16, class SCORES>
static __device__ __forceinline__ void first_tile(consumer<SHAPE> &c, attention_storage<SHAPE> *m,
                                                  int base, const SCORES &scores)
{
    clear(c);
    ft_pipeline_consumer_wait(m->keys, c.key);
    take_turn<SHAPE>(c.warpgroup);
    issue_qk<SHAPE, bf16>(c, m);
    pass_turn<SHAPE>(c.warpgroup);
    wait_qk<0>(c, m);
    softmax(c, m, base, scores);
    pack_weights<SHAPE, bf16>(c);
}

/* The next tile: its QK GEMM runs beside the PV GEMM of the previous one. */
template <class SHAPE, bool bf16, class SCORES>
static __device__ __forceinline__ void next_tile(consumer<SHAPE> &c, attention_storage<SHAPE> *m,
                                                 int base, const SCORES &scores)
{
    ft_pipeline_consumer_wait(m->keys, c.key);
    take_turn<SHAPE>(c.warpgroup);
    issue_qk<SHAPE, bf16>(c, m);
    ft_pipeline_consumer_wait(m->values, c.value);
    issue_pv<SHAPE, bf16>(c, m);
    pass_turn<SHAPE>(c.warpgroup);
    wait_qk<1>(c, m);
    row_rescale rescale = softmax(c, m, base, scores);
    wait_pv_and_rescale(c, m, rescale);
    pack_weights<SHAPE, bf16>(c);
}

/* The PV GEMM of the last tile, of which `keys` keys exist. */
template <class SHAPE, bool bf16>
static __device__ __forceinline__ void last_pv(consumer<SHAPE> &c, attention_storage<SHAPE> *m,
                                               int keys)
{
    ft_pipeline_consumer_wait(m->values, c.value);
    if (keys < KEYS)
        zero_values<SHAPE>(m->value[c.value.stage_index], keys, c.warpgroup);
    issue_pv<SHAPE, bf16>(c, m);
    wait_pv(c);
    release(m->values, &c.value, SHAPE::stages);
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
        int base = m->work[c.query.stage_index].first_key,
            end = m->work[c.query.stage_index].end_key;
        first_tile<SHAPE, bf16>(c, m, base, scores);
        for (base += KEYS; base < end; base += KEYS)
            next_tile<SHAPE, bf16>(c, m, base, scores);
        last_pv<SHAPE, bf16>(c, m, end - (base - KEYS));
        finish<SHAPE, bf16>(c, m, to);
    }
}

#endif
#endif
