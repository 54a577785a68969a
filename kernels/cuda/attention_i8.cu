/*
 * attention_i8.cu - attention on codes, with the bits of kernels/cpu/attention_i8.c.
 *
 * The probabilities are quantized by a scale that is known before, so all exponentials must be
 * added before the first code: the largest score, the sum, and the codes are three sweeps over the
 * keys.  Between them the numbers are kept in shared memory, 64 bytes a key and warp, as long as
 * that leaves eight warps on a multiprocessor: up to 384 keys.  For more, scores and exponentials
 * are computed anew: on an H200 42 instructions for a score instead of 28.
 *
 * Instructions are the limit, 2.1 to 2.8 of 4 a clock, and neither products nor memory.  What is
 * kept is read by the lane that wrote it; only keys and values are shared.  Kept in registers, 384
 * scores need 130 KB of code without loops, and warps wait for instructions a quarter of the time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/attention_i8.cuh"

enum { SLOTS = 4, MOST_KEPT = 384, KEPT_BYTES = FT_CUDA_QUERIES * sizeof(float) };

/* ---- Tiles of keys and values come into a ring ------------------------------------------------
 */

template <int width> static constexpr int tile_bytes = TILE *width;

/*
 * What comes: the keys, then the values; or, if nothing is kept, the keys twice and then keys and
 * values in turns.
 */
typedef struct feed {
    ft_rows_of next;      /* `count` rows are left in this sweep */
    const uint8_t *again; /* where the next sweep begins */
    const uint8_t *other; /* in turns: what comes after `next`; before that the values */
    uint8_t *slots;
    int length;
    bool kept;
    int sweeps; /* that are left */
    int turn;   /* 0: no turns; 1: the next tile is of keys; 2: of values */
    uint32_t fetched, taken;
} feed;

/* The end of a sweep; the last of three is in turns. */
static __device__ __forceinline__ void next_sweep(feed *f)
{
    f->turn = f->sweeps == 2 && !f->kept;
    f->sweeps--;
    f->next.data = f->again;
    f->next.count = f->length;
}

static __device__ __forceinline__ void advance(feed *f)
{
    f->next.data += (size_t) TILE * f->next.stride;
    if (f->turn != 0) {
        const uint8_t *data = f->next.data;
        f->next.data = f->other;
        f->other = data;
        f->turn = 3 - f->turn;
        if (f->turn == 2)
            return;
    }
    f->next.count -= TILE;
    if (f->next.count <= 0)
        next_sweep(f);
}

template <int width> static __device__ __forceinline__ void fetch(feed *f)
{
    if (f->sweeps > 0) {
        ft_stage_rows<width, TILE, THREADS>(f->slots + f->fetched++ % SLOTS * tile_bytes<width>,
                                            f->next);
        advance(f);
    }
    ft_copy_commit();
}

/* The next tile, when it is there; the copy of another begins, into the slot of the one before. */
template <int width> static __device__ __forceinline__ const uint8_t *take(feed *f)
{
    ft_copy_wait<SLOTS - 2>();
    __syncthreads();
    fetch<width>(f);
    return f->slots + f->taken++ % SLOTS * tile_bytes<width>;
}

/* Three tiles begin to come, and the queries, in the last slot. */
template <int width>
static __device__ __forceinline__ void begin(feed *f, const ft_cuda_heads &a,
                                             const ft_attention_task &task, uint8_t *slots,
                                             int unit, bool kept)
{
    uint32_t stride = (uint32_t) (a.heads * a.head_size);
    size_t first = task.first * stride + task.column;
    ft_rows_of rows = ft_rows_for_thread<width, THREADS>((const uint8_t *) a.q + first, 0,
                                                         a.head_size, stride, unit);
    ptrdiff_t to_keys = (const uint8_t *) a.k - (const uint8_t *) a.q;
    ptrdiff_t to_values = (const uint8_t *) a.v - (const uint8_t *) a.q;
    *f = feed{};
    f->slots = slots;
    f->length = task.length;
    f->kept = kept;
    f->sweeps = kept ? 2 : 3;
    f->other = rows.data + to_values;
    f->again = kept ? f->other : rows.data + to_keys;
    f->next = rows;
    f->next.data += (size_t) task.query * stride;
    f->next.count = task.queries;
    ft_stage_rows<width, TILE, THREADS>(slots + (SLOTS - 1) * tile_bytes<width>, f->next);
    f->next.data = rows.data + to_keys;
    f->next.count = task.length;
    for (int i = 0; i < SLOTS - 1; i++)
        fetch<width>(f);
}

/* ---- What a lane keeps ------------------------------------------------------------------------
 */

/* The tile from `key` on of this warp, in an area for `room` keys. */
static __device__ __forceinline__ uint4 *kept_at(uint4 *area, int room, int key)
{
    return area + (int) threadIdx.x / 32 * room * 4 + key * 4 + (int) threadIdx.x % 32;
}

static __device__ __forceinline__ void keep(uint4 *at, const scores *c)
{
#pragma unroll
    for (int j = 0; j < TILE / 8; j++)
        at[32 * j] = make_uint4(c->of[j][0], c->of[j][1], c->of[j][2], c->of[j][3]);
}

static __device__ __forceinline__ void recall(scores *c, const uint4 *at)
{
#pragma unroll
    for (int j = 0; j < TILE / 8; j++) {
        uint4 v = at[32 * j];
        c->of[j][0] = v.x, c->of[j][1] = v.y, c->of[j][2] = v.z, c->of[j][3] = v.w;
    }
}

/* ---- The sweeps -------------------------------------------------------------------------------
 */

/* A warp without queries takes part in the copies only. */
typedef struct work {
    feed from;
    bool busy, kept;
    uint4 *area; /* what is kept */
    int room;
} work;

/* The largest scores. */
template <int width>
static __device__ __forceinline__ void first_sweep(work *w, softmax *s, const uint32_t q[][4])
{
    int32_t most[2] = { 0, 0 };
    for (int key = 0; key < w->from.length; key += TILE) {
        const uint8_t *tile = take<width>(&w->from);
        if (!w->busy)
            continue;
        scores c;
        score<width>(&c, q, tile);
        if (w->kept)
            keep(kept_at(w->area, w->room, key), &c);
        raise_most(most, &c, w->from.length - key);
    }
    settle_most(s, most);
}

static __device__ __forceinline__ void second_sweep_kept(work *w, softmax *s)
{
    for (int key = 0; key < w->from.length; key += TILE) {
        uint4 *at = kept_at(w->area, w->room, key);
        scores c;
        recall(&c, at);
        exponentials(&c, s, w->from.length - key);
        keep(at, &c);
        add_up(s, &c);
    }
}

template <int width>
static __device__ __forceinline__ void third_sweep_kept(work *w, const softmax *s,
                                                        int32_t sums[][4])
{
    for (int key = 0; key < w->from.length; key += TILE) {
        scores c;
        uint32_t codes[TILE / 32][4];
        if (w->busy) {
            recall(&c, kept_at(w->area, w->room, key));
            encode(codes, &c, s);
        }
        const uint8_t *tile = take<width>(&w->from);
        if (w->busy)
            mix<width>(sums, codes, tile);
    }
}

template <int width>
static __device__ __forceinline__ void second_sweep(work *w, softmax *s, const uint32_t q[][4])
{
    for (int key = 0; key < w->from.length; key += TILE) {
        const uint8_t *tile = take<width>(&w->from);
        if (!w->busy)
            continue;
        scores c;
        score<width>(&c, q, tile);
        exponentials(&c, s, w->from.length - key);
        add_up(s, &c);
    }
}

template <int width>
static __device__ __forceinline__ void third_sweep(work *w, const softmax *s, const uint32_t q[][4],
                                                   int32_t sums[][4])
{
    for (int key = 0; key < w->from.length; key += TILE) {
        scores c;
        uint32_t codes[TILE / 32][4];
        const uint8_t *tile = take<width>(&w->from);
        if (w->busy) {
            score<width>(&c, q, tile);
            exponentials(&c, s, w->from.length - key);
            encode(codes, &c, s);
        }
        tile = take<width>(&w->from);
        if (w->busy)
            mix<width>(sums, codes, tile);
    }
}

/* ---- The kernel -------------------------------------------------------------------------------
 */

/* One block per block of queries and head; `room`: keys for which a block has memory. */
template <int width>
static __global__ void __launch_bounds__(THREADS, width <= 64    ? 4
                                                  : width <= 128 ? 3
                                                                 : 2)
    attend_kernel(const __grid_constant__ ft_cuda_heads a, int unit, int room)
{
    extern __shared__ uint4 shared[];
    ft_attention_task task;
    ft_wait_for_predecessor();
    if (!ft_take_task(&task, a))
        return;
    int row = (int) threadIdx.x / 32 * 16;
    work w = {};
    w.busy = row < task.queries;
    w.area = shared + SLOTS * tile_bytes<width> / 16;
    w.room = room;
    w.kept = task.length <= room;
    begin<width>(&w.from, a, task, (uint8_t *) shared, unit, w.kept);
    ft_let_successor_begin();

    uint32_t q[width / 32][4];
    softmax s = {};
    s.scale = a.score_scale * FT_LOG2_E;
    ft_copy_wait<SLOTS - 2>();
    __syncthreads();
    load_queries<width>(q, w.from.slots + (SLOTS - 1) * tile_bytes<width>, row);
    first_sweep<width>(&w, &s, q);
    if (w.kept && w.busy)
        second_sweep_kept(&w, &s);
    else if (!w.kept)
        second_sweep<width>(&w, &s, q);
    settle_factor(&s, a.p_inverse);
    int32_t sums[width / 8][4] = {};
    if (w.kept)
        third_sweep_kept<width>(&w, &s, sums);
    else
        third_sweep<width>(&w, &s, q, sums);
    if (w.busy)
        store<width>(a, task, sums);
}

/* ------------------------------------------------------------------------------------------ */

/*
 * Keys for which a block has memory: as many as are expected, if two blocks fit then.  Else long
 * sequences want more blocks rather than more memory, and the short ones among them little.
 */
static int room_for(const ft_cuda_chip *chip, const ft_cuda_heads *a, size_t slots)
{
    size_t half = chip->shared / 2, most = half > slots ? (half - slots) / KEPT_BYTES : 0;
    size_t wanted = a->longest == 0 ? MOST_KEPT : (a->longest + TILE - 1) / TILE * TILE;
    wanted = wanted <= MOST_KEPT && wanted <= most ? wanted : 128;
    return (int) (wanted <= most ? wanted : most / TILE * TILE);
}

template <int width>
static int attend(const ft_cuda_chip *chip, void *stream, const ft_cuda_heads *a)
{
    size_t bytes = SLOTS * tile_bytes<width>;
    int unit = ft_stage_unit((size_t) a->head_size, a->q, a->k, a->v);
    int room = room_for(chip, a, bytes);
    bytes += (size_t) room * KEPT_BYTES;
    cudaError_t status =
        cudaFuncSetAttribute(attend_kernel<width>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             (int) chip->shared); /* one limit for all launches, of any thread */
    if (status != cudaSuccess)
        return (int) status;
    return ft_launch(attend_kernel<width>, ft_attention_grid(a), dim3(THREADS), bytes, stream,
                     chip->overlaps, 1, *a, unit, room);
}

int ft_cuda_attend_i8(const ft_cuda_chip *chip, void *stream, const ft_cuda_heads *a)
{
    return a->head_size <= 32    ? attend<32>(chip, stream, a)
           : a->head_size <= 64  ? attend<64>(chip, stream, a)
           : a->head_size <= 96  ? attend<96>(chip, stream, a)
           : a->head_size <= 128 ? attend<128>(chip, stream, a)
                                 : attend<256>(chip, stream, a);
}
