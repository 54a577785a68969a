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
static __global__ void __launch_bounds__(THREADS)
    store_kv_kernel(const __grid_constant__ store_kv_params a)
{
    __shared__ float cosine[MAX_ROTARY_PAIRS], sine[MAX_ROTARY_PAIRS];
    size_t row = blockIdx.x;
    int sequence = a.seq_id[row], position = 0;
    if (sequence >= 0) { /* otherwise a padding row of the batch bucket */
        position = row_position(a, row, sequence);
        if (a.inv_freq != NULL)
            rope_compute_angles(cosine, sine, a, position, a.n_tokens[sequence], THREADS);
    }
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    if (sequence < 0)
        return;
    __syncthreads();
    store_kv_heads<N>(a, row, sequence, position, (int) blockIdx.y, (int) gridDim.y, THREADS,
                      cosine, sine);
}

/* ---- Launch -------------------------------------------------------------------------------- */

store_kv_params ft_store_kv_params_of(const ft_cuda_args *args)
{
    const ft_attr *attr = &args->op->attr;
    const ft_cuda_batch *batch = args->batch;
    bool is_cross_kv = args->in[0].data == NULL;
    store_kv_params a = {};
    a.query = args->in[0].data;
    a.key = args->in[1].data;
    a.value = args->in[2].data;
    a.rotated = args->out.data;
    a.keys.data = args->state[FT_STATE_KEYS].data;
    a.keys.scales = (float *) args->state[FT_STATE_KEY_SCALES].data;
    a.values.data = args->state[FT_STATE_VALUES].data;
    a.values.scales = (float *) args->state[FT_STATE_VALUE_SCALES].data;
    a.inv_freq = is_cross_kv ? NULL : (const float *) args->weight[0]->data;
    a.seq_id = batch->seq_id;
    a.start = batch->start;
    a.n_past = batch->n_past;
    a.n_tokens = batch->n_tokens;
    a.pages = attr->cross_kv ? batch->cross_kv_pages : batch->pages;
    a.max_pages = attr->cross_kv ? batch->max_cross_kv_pages : batch->max_pages;
    a.heads = is_cross_kv ? 0 : attr->heads;
    a.kv_heads = attr->kv_heads;
    a.head_size = (int) (args->in[1].cols / (size_t) attr->kv_heads);
    a.dtype = args->in[1].dtype;
    a.rotated_dtype = args->out.dtype;
    a.cache_dtype = args->state[FT_STATE_KEYS].dtype;
    a.max_positions = attr->rope_positions;
    a.theta = attr->rope_theta;
    a.factor = attr->rope_factor;
    return a;
}

/* CTAs per row, chosen so that few rows still occupy the device. */
static unsigned ctas_per_row(const ft_cuda_device_props *props, const store_kv_params *a,
                             size_t rows)
{
    unsigned groups = (unsigned) (THREADS / a->lanes_per_head);
    unsigned max_ctas = ft_ceil_div((size_t) (a->heads + 2 * a->kv_heads), groups);
    size_t wanted = 2 * (size_t) props->sm_count / (rows > 0 ? rows : 1);
    return wanted < 1 ? 1 : wanted < max_ctas ? (unsigned) wanted : max_ctas;
}

template <int N> static int launch(const ft_cuda_args *args, store_kv_params *a)
{
    a->lanes_per_head = 1;
    while (a->lanes_per_head * N < a->head_size / 2)
        a->lanes_per_head *= 2;
    dim3 grid((unsigned) args->in[1].rows, ctas_per_row(args->props, a, args->in[1].rows));
    return ft_launch(store_kv_kernel<N>, grid, dim3(THREADS), 0, args->stream, args->props->has_pdl,
                     1, *a);
}

extern "C" int ft_cuda_store_kv(const ft_cuda_args *args)
{
    store_kv_params a = ft_store_kv_params_of(args);
    if (a.head_size % 8 != 0 || a.head_size > FT_CUDA_MAX_HEAD_SIZE)
        return (int) cudaErrorNotSupported;
    if (args->in[1].rows == 0)
        return (int) cudaSuccess;
    return a.head_size % 16 == 0 ? launch<8>(args, &a) : launch<4>(args, &a);
}
