/*
 * store.cu - rotates queries and keys to their positions, and puts keys and values into the cache;
 * without queries nothing is rotated, and it may be the memory that keys and values go to.
 *
 * Rotary embedding in the order of Hugging Face checkpoints: element i of a head is turned together
 * with element i + head_size / 2, by position * frequency[i].  Positions reach 131072 and the first
 * frequency is 1, so sines and cosines are the library's, with their full reduction of the angle;
 * a block computes them once for all heads of its row.
 *
 * A head is the work of a few neighbouring lanes, each with a piece of its lower and of its upper
 * half: the partners of a rotation meet in a thread, and the largest magnitude of a head, which is
 * the scale of its codes, in a few shuffles.
 *
 * Angles are made before the predecessor has ended: the numbers of the run were there before it
 * began, since it waited for what came before it and only then let this kernel begin.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cache.h"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/rows.cuh"
#include "kernels/quant.h"

enum { THREADS = 256, MOST_PAIRS = FT_CUDA_WIDEST_HEAD / 2 };

/* A value's place in the cache. */
typedef struct place {
    void *data;
    float *scales; /* one for each token and head, where the cache holds codes */
} place;

typedef struct job {
    void *query, *key, *value, *turned; /* rows of heads; `turned` are the queries' */
    place keys, values;
    const float *frequency; /* NULL: nothing is turned */
    const int32_t *owner, *start, *past, *reach, *pages;
    size_t most_pages;
    int heads, kv_heads, head_size; /* heads: of queries, of which there may be none */
    int lanes;                      /* that share a head: a power of two, some may have nothing */
    ft_dtype dtype, turned_dtype, cache_dtype;
    int positions; /* frequencies stretch in longer texts; 0: never */
    float theta, factor;
} job;

/* ---- Angles -------------------------------------------------------------------------------- */

/* How much the base of the frequencies grows for a text of `reach` tokens: "dynamic" scaling. */
static __device__ double stretched_base(const job &a, int reach)
{
    double size = a.head_size;
    double stretch = (double) a.factor * reach / a.positions - ((double) a.factor - 1.0);
    return (double) a.theta * pow(stretch, size / (size - 2.0));
}

/* The frequency of pair i. */
static __device__ __forceinline__ float frequency_of(const job &a, int i, int reach)
{
    if (a.positions == 0 || reach <= a.positions)
        return a.frequency[i];
    return (float) pow(stretched_base(a, reach), -2.0 * (double) i / (double) a.head_size);
}

static __device__ __forceinline__ void set_angles(float *cosine, float *sine, const job &a,
                                                  int position, int reach)
{
    for (int i = (int) threadIdx.x; i < a.head_size / 2; i += THREADS)
        sincosf((float) position * frequency_of(a, i, reach), &sine[i], &cosine[i]);
}

/* ---- Heads --------------------------------------------------------------------------------- */

/* N neighbours of the lower half of a head, and their partners in the upper one. */
template <int N> struct halves {
    float low[N], high[N];
};

template <int N>
static __device__ __forceinline__ void turn(halves<N> *x, const float *cosine, const float *sine)
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        float a = x->low[i], b = x->high[i];
        x->low[i] = a * cosine[i] - b * sine[i];
        x->high[i] = b * cosine[i] + a * sine[i];
    }
}

/* The largest magnitude of the head: all lanes of a warp take part. */
template <int N> static __device__ __forceinline__ float amax_of(const halves<N> &x, int lanes)
{
    float amax = 0.0f;
#pragma unroll
    for (int i = 0; i < N; i++)
        amax = fmaxf(amax, fmaxf(fabsf(x.low[i]), fabsf(x.high[i])));
    for (int step = lanes / 2; step > 0; step /= 2)
        amax = fmaxf(amax, __shfl_xor_sync(~0u, amax, step));
    return amax;
}

/* Write a piece, and where it becomes codes, the head's scale. */
template <int N>
static __device__ __forceinline__ void keep(const job &a, const place &to, size_t row, int first,
                                            halves<N> *x, float amax)
{
    size_t at = row * (size_t) a.head_size + (size_t) first, half = (size_t) a.head_size / 2;
    if (a.cache_dtype != FT_I8) {
        ft_store<N>(to.data, a.cache_dtype, at, x->low);
        ft_store<N>(to.data, a.cache_dtype, at + half, x->high);
        return;
    }
    float scale = ft_scale_from_amax(amax), inverse = ft_inverse_scale(scale);
    ft_store_codes_as<FT_I8, N>(to.data, at, x->low, inverse);
    ft_store_codes_as<FT_I8, N>(to.data, at + half, x->high, inverse);
    if (first == 0)
        to.scales[row] = scale;
}

/* Head `item` of the row: of its queries, then its keys, then its values. */
template <int N>
static __device__ __forceinline__ void store_head(const job &a, size_t row, size_t sequence,
                                                  int position, int item, int first, bool mine,
                                                  const float *cosine, const float *sine)
{
    size_t half = (size_t) a.head_size / 2;
    bool is_query = item < a.heads, is_key = !is_query && item < a.heads + a.kv_heads;
    int head = is_query ? item : (item - a.heads) % a.kv_heads,
        heads = is_query ? a.heads : a.kv_heads;
    size_t at = (row * (size_t) heads + (size_t) head) * (size_t) a.head_size + (size_t) first;
    halves<N> x = {};
    if (mine) {
        void *from = is_query ? a.query : is_key ? a.key : a.value;
        ft_load<N>(x.low, from, a.dtype, at);
        ft_load<N>(x.high, from, a.dtype, at + half);
        if (a.frequency != NULL && (is_query || is_key))
            turn(&x, cosine + first, sine + first);
    }
    float amax = a.cache_dtype == FT_I8 ? amax_of(x, a.lanes) : 0.0f;
    if (!mine)
        return;
    if (is_query) {
        ft_store<N>(a.turned, a.turned_dtype, at, x.low);
        ft_store<N>(a.turned, a.turned_dtype, at + half, x.high);
        return;
    }
    size_t cached = ft_cache_find(a.pages + sequence * a.most_pages, (size_t) position,
                                  (size_t) head, (size_t) heads);
    keep(a, is_key ? a.keys : a.values, cached, first, &x, amax);
}

/* A row is the work of gridDim.y blocks: one has too few threads where there are few rows. */
template <int N>
static __global__ void __launch_bounds__(THREADS) store_kernel(const __grid_constant__ job a)
{
    __shared__ float cosine[MOST_PAIRS], sine[MOST_PAIRS];
    size_t row = blockIdx.x;
    int sequence = a.owner[row], position = 0;
    if (sequence >= 0) { /* else a row between the run and its bucket */
        position = a.past[sequence] + (int) row - a.start[sequence];
        if (a.frequency != NULL)
            set_angles(cosine, sine, a, position, a.reach[sequence]);
    }
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    if (sequence < 0)
        return;
    __syncthreads();
    int groups = THREADS / a.lanes, items = a.heads + 2 * a.kv_heads;
    int group = (int) threadIdx.x / a.lanes, first = (int) threadIdx.x % a.lanes * N;
    for (int item = (int) blockIdx.y * groups; item < items; item += (int) gridDim.y * groups)
        store_head<N>(a, row, (size_t) sequence, position, min(item + group, items - 1), first,
                      item + group < items && first < a.head_size / 2, cosine, sine);
}

/* ---- Launch -------------------------------------------------------------------------------- */

static job job_of(const ft_cuda_args *args)
{
    const ft_attr *attr = &args->op->attr;
    const ft_cuda_batch *batch = args->batch;
    bool plain = args->in[0].data == NULL;
    job a = {};
    a.query = args->in[0].data;
    a.key = args->in[1].data;
    a.value = args->in[2].data;
    a.turned = args->out.data;
    a.keys.data = args->state[FT_STATE_KEYS].data;
    a.keys.scales = (float *) args->state[FT_STATE_KEY_SCALES].data;
    a.values.data = args->state[FT_STATE_VALUES].data;
    a.values.scales = (float *) args->state[FT_STATE_VALUE_SCALES].data;
    a.frequency = plain ? NULL : (const float *) args->weight[0]->data;
    a.owner = batch->owner;
    a.start = batch->start;
    a.past = batch->past;
    a.reach = batch->reach;
    a.pages = attr->memory ? batch->memory_pages : batch->pages;
    a.most_pages = attr->memory ? batch->most_memory_pages : batch->most_pages;
    a.heads = plain ? 0 : attr->heads;
    a.kv_heads = attr->kv_heads;
    a.head_size = (int) (args->in[1].cols / (size_t) attr->kv_heads);
    a.dtype = args->in[1].dtype;
    a.turned_dtype = args->out.dtype;
    a.cache_dtype = args->state[FT_STATE_KEYS].dtype;
    a.positions = attr->rope_positions;
    a.theta = attr->rope_theta;
    a.factor = attr->rope_factor;
    return a;
}

/* Blocks for each row, so that few rows still occupy the device. */
static unsigned blocks_of_row(const ft_cuda_chip *chip, const job *a, size_t rows)
{
    unsigned groups = (unsigned) (THREADS / a->lanes);
    unsigned most = ft_cover((size_t) (a->heads + 2 * a->kv_heads), groups);
    size_t wanted = 2 * (size_t) chip->multiprocessors / (rows > 0 ? rows : 1);
    return wanted < 1 ? 1 : wanted < most ? (unsigned) wanted : most;
}

template <int N> static int launch(const ft_cuda_args *args, job *a)
{
    a->lanes = 1;
    while (a->lanes * N < a->head_size / 2)
        a->lanes *= 2;
    dim3 grid((unsigned) args->in[1].rows, blocks_of_row(args->chip, a, args->in[1].rows));
    return ft_launch(store_kernel<N>, grid, dim3(THREADS), 0, args->stream, args->chip->overlaps, 1,
                     *a);
}

extern "C" int ft_cuda_store(const ft_cuda_args *args)
{
    job a = job_of(args);
    if (a.head_size % 8 != 0 || a.head_size > FT_CUDA_WIDEST_HEAD)
        return (int) cudaErrorNotSupported;
    if (args->in[1].rows == 0)
        return (int) cudaSuccess;
    return a.head_size % 16 == 0 ? launch<8>(args, &a) : launch<4>(args, &a);
}
