/*
 * store_kv.cu - the operation STORE_KV: rotary embedding of queries and keys, and storing keys and
 * values in the cache. Without queries nothing is rotated; this form also stores the
 * cross-attention KV.
 *
 * Rotary embedding follows the layout of Hugging Face checkpoints: element i of a head is rotated
 * together with element i + head_size / 2, by position * inv_freq[i]. Positions reach 131072 and
 * the first frequency is 1, so the kernel uses the library's sine and cosine with full argument
 * reduction. A CTA computes them once for all heads of its row.
 *
 * A few consecutive lanes process one head, each with a chunk of its lower and of its upper half. A
 * thread therefore holds both partners of a rotation, and a few shuffles find the amax of a head,
 * from which its quantization scale follows.
 *
 * The angles are computed before the predecessor has ended. The batch metadata exists already then:
 * the predecessor waited for its own predecessor before it launched this kernel.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/attention/cache/store_kv.cuh"
#include "kernels/cuda/common.cuh"

enum { THREADS = 256 };

/*
 * A row is divided among gridDim.y CTAs, because one CTA has too few threads if there are few rows.
 */
template <int N>
static __global__ void __launch_bounds__(THREADS) store_kernel(const __grid_constant__ store_job a)
{
    __shared__ float cosine[STORE_PAIRS], sine[STORE_PAIRS];
    size_t row = blockIdx.x;
    int sequence = a.owner[row], position = 0;
    if (sequence >= 0) { /* otherwise a padding row of the batch bucket */
        position = store_position(a, row, sequence);
        if (a.inv_freq != NULL)
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
    a.inv_freq = plain ? NULL : (const float *) args->weight[0]->data;
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

/* CTAs per row, chosen so that few rows still occupy the device. */
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
