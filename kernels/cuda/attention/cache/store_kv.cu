/*
 * store_kv.cu - rotates queries and keys to their positions, and puts keys and values into the cache;
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
#include "kernels/cuda/attention/cache/store_kv.cuh"
#include "kernels/cuda/common.cuh"

enum { THREADS = 256 };

/* A row is the work of gridDim.y blocks: one has too few threads where there are few rows. */
template <int N>
static __global__ void __launch_bounds__(THREADS) store_kernel(const __grid_constant__ store_job a)
{
    __shared__ float cosine[STORE_PAIRS], sine[STORE_PAIRS];
    size_t row = blockIdx.x;
    int sequence = a.owner[row], position = 0;
    if (sequence >= 0) { /* else a row between the run and its bucket */
        position = store_position(a, row, sequence);
        if (a.frequency != NULL)
            store_angles(cosine, sine, a, position, a.reach[sequence], THREADS);
    }
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    if (sequence < 0)
        return;
    __syncthreads();
    store_heads<N>(a, row, sequence, position, (int) blockIdx.y, (int) gridDim.y, THREADS, cosine,
                   sine);
}

/* ---- Launch -------------------------------------------------------------------------------- */

store_job ft_store_job_of(const ft_cuda_args *args)
{
    const ft_attr *attr = &args->op->attr;
    const ft_cuda_batch *batch = args->batch;
    bool plain = args->in[0].data == NULL;
    store_job a = {};
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
static unsigned blocks_of_row(const ft_cuda_chip *chip, const store_job *a, size_t rows)
{
    unsigned groups = (unsigned) (THREADS / a->lanes);
    unsigned most = ft_cover((size_t) (a->heads + 2 * a->kv_heads), groups);
    size_t wanted = 2 * (size_t) chip->multiprocessors / (rows > 0 ? rows : 1);
    return wanted < 1 ? 1 : wanted < most ? (unsigned) wanted : most;
}

template <int N> static int launch(const ft_cuda_args *args, store_job *a)
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
    store_job a = ft_store_job_of(args);
    if (a.head_size % 8 != 0 || a.head_size > FT_CUDA_WIDEST_HEAD)
        return (int) cudaErrorNotSupported;
    if (args->in[1].rows == 0)
        return (int) cudaSuccess;
    return a.head_size % 16 == 0 ? launch<8>(args, &a) : launch<4>(args, &a);
}
