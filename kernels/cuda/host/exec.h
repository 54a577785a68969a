/*
 * exec.h - a plan on one stream: its device memory, and one CUDA graph for each bucket it has seen.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_HOST_EXEC_H
#define FT_KERNELS_CUDA_HOST_EXEC_H

#include "kernels/cuda/host/device.h"

enum { FT_CUDA_GRAPHS = 32 };

/*
 * The shape of a CUDA graph.  The shape of a forward pass is rounded up to a bucket, so that a few
 * graphs serve all lengths.  Padding rows have zeros as inputs and belong to no sequence.
 */
typedef struct ft_cuda_bucket {
    size_t tokens, sequences, query_tiles;
    size_t context, selected;      /* plans with a KV cache: as in ft_batch */
    size_t beam_groups, max_beams; /* ... beam searches, and beams of the widest one */
    size_t cross_kv, n_beams; /* encoder-decoders: tokens of the longest source; ft_batch.lanes */
    bool is_decode, samples, is_encoder;
    bool few_kv_pages; /* ft_cuda_batch.few_kv_pages */
} ft_cuda_bucket;

/* Byte offsets of the inputs of a forward pass, in the pinned buffer and on the device. */
typedef struct ft_cuda_input_offsets {
    size_t input[FT_NUM_BATCH_INPUTS]; /* ft_batch.input, where the plan reads it */
    size_t start, query_tiles;
    size_t seq_id, n_past, n_tokens, slot, pages, selected_rows, sampling,
        beams;                            /* plans with a KV cache */
    size_t cross_kv_last, cross_kv_pages; /* encoder-decoders */
    size_t bytes;
} ft_cuda_input_offsets;

typedef struct ft_cuda_graph {
    ft_cuda_bucket bucket;
    cudaGraphExec_t graph;   /* NULL: this entry is free */
    unsigned long last_used; /* number of the last forward pass that launched it */
} ft_cuda_graph;

struct ft_exec {
    const ft_plan *plan;
    const ft_device *device;
    ft_limits limits;
    bool has_cache; /* KV cache or cross-attention KV */
    cudaStream_t stream;
    void *blas; /* cublasHandle_t; NULL where no GEMM of the plan needs it */
    void *blas_memory;

    char *arena;   /* the plan's values */
    char *scratch; /* shared by all operations, which run one after another */
    size_t scratch_bytes;
    uint32_t *counters; /* shared by all operations; zero between any two of them */

    /* The arrays of the batch; one kernel copies all. */
    bool reads_input[FT_NUM_BATCH_INPUTS];
    char *staging;      /* pinned */
    char *inputs;       /* on the device */
    uint32_t *count;    /* on the device: ft_cuda_inputs.count */
    uint32_t *consumed; /* pinned: passes whose inputs have been copied from `staging` ... */
    uint32_t launched;  /* ... out of this number of launched passes */
    ft_cuda_mailbox_entry *mailbox; /* pinned, [2][selected] */

    /* [nvalue], zeros for values without counters; NULL before the first counting pass */
    ft_cuda_counts *counts;
    char *count_memory;
    bool counting;    /* this forward pass updates the counters */
    bool exact_shape; /* it has the shape of its batch, not that of a bucket */

    ft_cuda_graph graphs[FT_CUDA_GRAPHS];
    unsigned long runs;
};

/* The elements of a value of the plan, in device memory. */
static inline const void *ft_cuda_value_data(const ft_exec *exec, int value)
{
    return exec->arena + exec->plan->value[value].offset;
}

/* exec_layout.c: the inputs of a forward pass of this shape. */
ft_cuda_input_offsets ft_cuda_layout_inputs(const ft_exec *exec, const ft_cuda_bucket *bucket);

/* Row scales of a dynamically quantized value. */
float *ft_cuda_row_scales(const ft_exec *exec, const ft_value *v);

/* Upper bound on the query tiles of `sequences` sequences that have `tokens` rows together. */
size_t ft_cuda_max_query_tiles(size_t tokens, size_t sequences);

/* stage.c: the bucket of a forward pass, ... */
ft_cuda_bucket ft_cuda_bucket_of(const ft_exec *exec, const ft_batch *batch);

/* ... and its inputs, written to the pinned buffer in the layout of that bucket; returns bytes. */
size_t ft_cuda_stage(ft_exec *exec, const ft_batch *batch, const ft_cuda_bucket *bucket);

/* launch_ops.c: what all operations of a forward pass share, ... */
typedef struct ft_cuda_launch_context {
    const ft_exec *exec;
    const ft_cuda_bucket *bucket;
    ft_cuda_batch batch;
    ft_cuda_input_offsets at;
} ft_cuda_launch_context;

ft_cuda_launch_context ft_cuda_launch_context_of(const ft_exec *exec, const ft_cuda_bucket *bucket);

/* ... and the launch of operations first .. end - 1, a range that splits no fusion group. */
ft_status ft_cuda_run_ops(const ft_cuda_launch_context *l, int first, int end, ft_error *err);

/* counter_download.c: device counters for each value that has host counters. */
ft_status ft_cuda_counts_open(ft_exec *exec, ft_counts *const *counts, ft_error *err);
void ft_cuda_counts_close(ft_exec *exec);

#endif
