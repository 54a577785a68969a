/*
 * exec.h - one plan on one stream: its memory, and the graphs of the shapes it has met.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_HOST_EXEC_H
#define FT_KERNELS_CUDA_HOST_EXEC_H

#include "kernels/cuda/host/device.h"

enum { FT_CUDA_GRAPHS = 32, FT_CUDA_INPUTS = 4 };

/*
 * The shape that a graph was made for.  Runs are rounded up to it, so that a few graphs serve all
 * lengths; the rows in between hold zeros as inputs and belong to no sequence.
 */
typedef struct ft_cuda_bucket {
    size_t tokens, sequences, blocks;
    size_t context, selected; /* plans with a cache: ft_batch */
    size_t groups, widest;    /* ... texts that are searched by beams; lanes of the widest */
    size_t cross_kv, lanes;   /* encoder-decoders: tokens of the longest source; ft_batch */
    bool step, samples, source;
} ft_cuda_bucket;

/* Where the inputs of a run begin, in the pinned buffer and on the device: bytes. */
typedef struct ft_cuda_input_offsets {
    size_t value[FT_CUDA_INPUTS];
    size_t start, blocks;
    size_t seq_id, n_past, n_tokens, slot, pages, selected_rows, choice,
        beams;                            /* plans with a cache */
    size_t cross_kv_last, cross_kv_pages; /* encoder-decoders */
    size_t bytes;
} ft_cuda_input_offsets;

typedef struct ft_cuda_graph {
    ft_cuda_bucket bucket;
    cudaGraphExec_t graph; /* NULL: the slot is free */
    unsigned long used;    /* the run that used it last */
} ft_cuda_graph;

struct ft_exec {
    const ft_plan *plan;
    const ft_device *device;
    ft_limits limits;
    bool has_cache; /* or a memory */
    cudaStream_t stream;
    void *blas; /* cublasHandle_t; NULL where the plan multiplies no floats */
    void *blas_memory;

    char *arena;   /* the plan's values */
    char *scratch; /* shared by all operations: they run one after the other */
    size_t scratch_bytes;
    uint32_t *counters; /* of operations: zeros between any two */

    /* Values without a producer live here, then starts and blocks; one kernel brings them all. */
    int input[FT_CUDA_INPUTS], ninputs;
    int32_t *column[FT_CUDA_INPUTS]; /* as written, on the host */
    size_t rows[FT_CUDA_INPUTS];
    char *staging;                  /* pinned */
    char *inputs;                   /* on the device */
    uint32_t *count;                /* of ft_cuda_copy_inputs(), on the device */
    uint32_t *consumed;             /* pinned: runs whose inputs have left `staging` ... */
    uint32_t launched;              /* ... of so many that were launched */
    ft_cuda_mailbox_entry *mailbox; /* pinned, [2][selected] */

    ft_cuda_counts *counts; /* [nvalue] of counted values, else zeros; NULL before a run counts */
    char *count_memory;
    bool counting; /* in this run */

    ft_cuda_graph graphs[FT_CUDA_GRAPHS];
    unsigned long runs;
};

/* exec_layout.c: the inputs of a forward pass of this shape. */
ft_cuda_input_offsets ft_cuda_layout_inputs(const ft_exec *exec, const ft_cuda_bucket *bucket);

/* The scales of a dynamic value's rows. */
float *ft_cuda_row_scales(const ft_exec *exec, const ft_value *v);

/* Blocks of queries that sequences of these rows make at most. */
size_t ft_cuda_max_query_tiles(size_t tokens, size_t sequences);

/* stage.c: the shape of a run, ... */
ft_cuda_bucket ft_cuda_bucket_of(const ft_exec *exec, const ft_batch *batch);

/* ... and its inputs in the pinned buffer, in the order of that shape; returns their bytes. */
size_t ft_cuda_stage(ft_exec *exec, const ft_batch *batch, const ft_cuda_bucket *bucket);

/* launch_ops.c: what all operations of a run share, ... */
typedef struct ft_cuda_launch_context {
    const ft_exec *exec;
    const ft_cuda_bucket *bucket;
    ft_cuda_batch batch;
    ft_cuda_input_offsets at;
} ft_cuda_launch_context;

ft_cuda_launch_context ft_cuda_launch_context_of(const ft_exec *exec, const ft_cuda_bucket *bucket);

/* ... and operations first .. end - 1, which cut no fusion group, put on the stream. */
ft_status ft_cuda_run_ops(const ft_cuda_launch_context *l, int first, int end, ft_error *err);

/* counter_download.c: device counters for every value that has counters on the host. */
ft_status ft_cuda_counts_open(ft_exec *exec, ft_counts *const *counts, ft_error *err);
void ft_cuda_counts_close(ft_exec *exec);

#endif
