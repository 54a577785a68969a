/*
 * consumer.cuh - a consumer warpgroup of attention: 64 queries of a work item.
 *
 * The QK GEMM of a tile and the PV GEMM of the tile before it are issued together; the softmax of
 * the tile runs beside the second one, and beside the GEMMs of other warpgroups.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_WGMMA_CONSUMER_CUH
#define FT_KERNELS_CUDA_ATTENTION_WGMMA_CONSUMER_CUH

#include "kernels/cuda/attention/wgmma/output.cuh"
#include "kernels/cuda/attention/wgmma/softmax.cuh"

#ifdef FT_HAS_WGMMA

#ifndef TRY_FLAT
#define TRY_FLAT 1
#endif
#ifndef TRY_TURNS
#define TRY_TURNS 1
#endif

/* The next stages to read. */
typedef struct consumer_state {
    ft_pipeline_state query, key, value;
} consumer_state;

template <class RING>
static __device__ __forceinline__ void release(RING &ring, ft_pipeline_state *state, int stages)
{
    __syncwarp();
    ft_pipeline_consumer_release(ring, state->stage_index);
    state->advance(stages);
}

/*
 * Two warpgroups issue their GEMMs in turns, so that one computes its softmax while the GEMMs of the
 * other run.
 */
template <class SHAPE> static __device__ __forceinline__ void take_turn(int warpgroup)
{
    if (TRY_TURNS && SHAPE::warpgroups > 1)
        ft_named_barrier_sync(4 + warpgroup, 2 * WARPGROUP);
}

template <class SHAPE> static __device__ __forceinline__ void pass_turn(int warpgroup)
{
    if (TRY_TURNS && SHAPE::warpgroups > 1)
        ft_named_barrier_arrive(4 + (warpgroup + 1) % SHAPE::warpgroups, 2 * WARPGROUP);
}

/* Issues s = q . k^T. */
template <class SHAPE, bool bf16>
static __device__ __forceinline__ void issue_qk(float (&s)[KEYS / 2], const uint8_t *query,
                                                const uint8_t *keys)
{
    uint64_t a = ft_wgmma_descriptor(query), b = ft_wgmma_descriptor(keys);
    ft_wgmma_fence();
#pragma unroll
    for (int i = 0; i < SHAPE::width / 16; i++)
        ft_wgmma_f16<KEYS, bf16>(s, a + (i / 4 * SHAPE::query_panel + i % 4 * 32) / 16,
                                 b + (i / 4 * KEY_PANEL + i % 4 * 32) / 16, i > 0);
    ft_wgmma_commit();
}

/* Issues acc += weights . v. */
template <class SHAPE, bool bf16>
static __device__ __forceinline__ void issue_pv(float (&acc)[SHAPE::width / 2],
                                                const uint32_t (&weights)[KEYS / 16][4],
                                                const uint8_t *values)
{
    uint64_t b = ft_wgmma_descriptor_trans(values, KEY_PANEL);
    ft_wgmma_fence();
#pragma unroll
    for (int i = 0; i < KEYS / 16; i++)
        ft_wgmma_f16_register_a_trans_b<SHAPE::width, bf16>(acc, weights[i],
                                                            b + i * 16 * ROW_BYTES / 16);
    ft_wgmma_commit();
}

template <bool bf16>
static __device__ __forceinline__ void pack_weights(uint32_t (&to)[KEYS / 16][4],
                                                    const float (&s)[KEYS / 2])
{
#pragma unroll
    for (int i = 0; i < KEYS / 4; i++)
        to[i / 4][i % 4] = pack_f16x2<bf16>(s[2 * i], s[2 * i + 1]);
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
    ft_named_barrier_sync(1 + warpgroup, WARPGROUP);
}

/* A warpgroup without queries releases what it would have read. */
template <class SHAPE, class STORAGE>
static __device__ __forceinline__ void skip(STORAGE *m, consumer_state *at, int warpgroup)
{
    const attention_work &w = m->work[at->query.stage_index];
    for (int base = w.first_key; base < w.end_key; base += KEYS) {
        ft_pipeline_consumer_wait(m->keys, at->key);
        take_turn<SHAPE>(warpgroup);
        pass_turn<SHAPE>(warpgroup);
        release(m->keys, &at->key, SHAPE::stages);
        ft_pipeline_consumer_wait(m->values, at->value);
        release(m->values, &at->value, SHAPE::stages);
    }
    release(m->queries, &at->query, QUERY_SLOTS);
}

/* Waits for the next work item; whether the warpgroup has queries in it. */
template <class STORAGE>
static __device__ __forceinline__ bool has_queries(STORAGE *m, const ft_pipeline_state &query,
                                                   int warpgroup)
{
    ft_pipeline_consumer_wait(m->queries, query);
    return BOX_ROWS * warpgroup < m->work[query.stage_index].queries;
}

/* Issues the last PV GEMM of a work item, or that of any other tile. */
template <class SHAPE, bool bf16, class STORAGE>
static __device__ __forceinline__ void
issue_pv_of(float (&acc)[SHAPE::width / 2], const uint32_t (&weights)[KEYS / 16][4], STORAGE *m,
            const consumer_state &at, int keys, int warpgroup)
{
    uint8_t *values = m->value[at.value.stage_index];
    ft_pipeline_consumer_wait(m->values, at.value);
    if (keys < KEYS)
        zero_values<SHAPE>(values, keys, warpgroup);
    issue_pv<SHAPE, bf16>(acc, weights, values);
}

/* Stores the result of a work item and releases its queries, which it overwrites. */
template <class SHAPE, bool bf16, class STORAGE>
static __device__ __forceinline__ void
finish(STORAGE *m, ft_pipeline_state *query, const attention_output &to, const float sum[2],
       float (&acc)[SHAPE::width / 2], int warpgroup)
{
    int row = BOX_ROWS * warpgroup + (int) threadIdx.x % WARPGROUP / 32 * 16;
    ft_named_barrier_sync(1 + warpgroup, WARPGROUP); /* all warps have read the queries */
    store_rows<SHAPE, bf16>(m->query[query->stage_index] + warpgroup * BOX_BYTES, to,
                            m->work[query->stage_index], row, sum, acc);
    release(m->queries, query, QUERY_SLOTS);
}

template <class SHAPE, bool bf16, class STORAGE, class SCORES>
static __device__ __forceinline__ void consume(STORAGE *m, const SCORES &scores,
                                               const attention_output &to, float scale,
                                               int warpgroup)
{
    const int row = BOX_ROWS * warpgroup + (int) threadIdx.x % WARPGROUP / 32 * 16;
    consumer_state at = {};
    float s[KEYS / 2], acc[SHAPE::width / 2];
    uint32_t weights[KEYS / 16][4];
    softmax_stats rows;
    if (warpgroup == SHAPE::warpgroups - 1)
        pass_turn<SHAPE>(warpgroup);
    for (;;) {
        while (!has_queries(m, at.query, warpgroup)) {
            if (m->work[at.query.stage_index].queries == 0)
                return;
            skip<SHAPE>(m, &at, warpgroup);
        }
        ft_pipeline_state query = at.query; /* of the tile whose scores are computed */
        int base = m->work[query.stage_index].first_key, end = m->work[query.stage_index].end_key;
        rows = softmax_stats{ { -INFINITY, -INFINITY }, { 0.0f, 0.0f } };
#pragma unroll
        for (int i = 0; i < SHAPE::width / 2; i++)
            acc[i] = 0.0f;
        ft_pipeline_consumer_wait(m->keys, at.key);
        take_turn<SHAPE>(warpgroup);
        issue_qk<SHAPE, bf16>(s, m->query[query.stage_index] + warpgroup * BOX_BYTES,
                              m->key[at.key.stage_index]);
        pass_turn<SHAPE>(warpgroup);
        ft_wgmma_wait<0>();
        ft_wgmma_fence_acc(s);
        release(m->keys, &at.key, SHAPE::stages);
        scores.prepare(s, m->work[query.stage_index], row, base);
        softmax_tile<SCORES::may_be_empty>(s, &rows, scale);
        pack_weights<bf16>(weights, s);
        for (;;) {
            int keys = end - base;
            bool last = keys <= KEYS;
            float sum[2] = { rows.sum[0], rows.sum[1] };
            base += KEYS;
            if (last) {
                query.advance(QUERY_SLOTS);
                if (!TRY_FLAT || !has_queries(m, query, warpgroup))
                    break;
                base = m->work[query.stage_index].first_key;
                end = m->work[query.stage_index].end_key;
                rows = softmax_stats{ { -INFINITY, -INFINITY }, { 0.0f, 0.0f } };
            }
            ft_pipeline_consumer_wait(m->keys, at.key);
            take_turn<SHAPE>(warpgroup);
            issue_qk<SHAPE, bf16>(s, m->query[query.stage_index] + warpgroup * BOX_BYTES,
                                  m->key[at.key.stage_index]);
            issue_pv_of<SHAPE, bf16>(acc, weights, m, at, keys, warpgroup);
            pass_turn<SHAPE>(warpgroup);
            ft_wgmma_wait<1>();
            ft_wgmma_fence_acc(s);
            release(m->keys, &at.key, SHAPE::stages);
            scores.prepare(s, m->work[query.stage_index], row, base);
            row_rescale rescale = softmax_tile<SCORES::may_be_empty>(s, &rows, scale);
            ft_wgmma_fence_acc(s);
            if (rescale.needed && !last) { /* a branch, above which no wait can move */
                ft_wgmma_wait<0>();
                ft_wgmma_fence_acc(acc);
                rescale_rows(acc, rescale);
            }
            ft_wgmma_wait<0>();
            ft_wgmma_fence_acc(acc);
            release(m->values, &at.value, SHAPE::stages);
            if (last) {
                finish<SHAPE, bf16>(m, &at.query, to, sum, acc, warpgroup);
#pragma unroll
                for (int i = 0; i < SHAPE::width / 2; i++)
                    acc[i] = 0.0f;
            }
            pack_weights<bf16>(weights, s);
        }
        issue_pv_of<SHAPE, bf16>(acc, weights, m, at, end - base + KEYS, warpgroup);
        ft_wgmma_wait<0>();
        ft_wgmma_fence_acc(acc);
        release(m->values, &at.value, SHAPE::stages);
        finish<SHAPE, bf16>(m, &at.query, to, rows.sum, acc, warpgroup);
    }
}

#endif
#endif
