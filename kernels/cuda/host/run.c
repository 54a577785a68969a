/*
 * run.c - runs a forward pass as one CUDA graph: the copy of its inputs, then every operation.
 *
 * A graph is captured on the first pass of its bucket and launched by later ones.  A launch
 * allocates nothing, and the host only waits until the inputs of the previous pass have been
 * copied.  Passes that count (calibration) and parts of passes use neither graphs nor buckets, so
 * that the counters see real rows only.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/host/exec.h"
#include "runtime/error.h"

/* Put the input copy and the kernels of operations first .. end - 1 on the stream. */
static ft_status enqueue_range(ft_exec *exec, const ft_cuda_bucket *bucket, size_t bytes, int first,
                               int end, ft_error *err)
{
    ft_cuda_launch_context l = ft_cuda_launch_context_of(exec, bucket);
    ft_cuda_inputs inputs = { .to = exec->inputs,
                              .from = exec->staging,
                              .bytes = bytes,
                              .count = exec->count,
                              .consumed = exec->consumed };
    int code = ft_cuda_copy_inputs(&exec->device->props, exec->stream, &inputs);
    if (code != 0)
        return ft_cuda_fail(err, &exec->device->props, code, "inputs");
    exec->launched += exec->exact_shape; /* else run_graph() increments it */
    return ft_cuda_run_ops(&l, first, end, err);
}

/* ... and those of a whole forward pass. */
static ft_status enqueue(ft_exec *exec, const ft_cuda_bucket *bucket, size_t bytes, ft_error *err)
{
    const ft_plan *plan = exec->plan;
    return bucket->is_encoder
               ? enqueue_range(exec, bucket, bytes, 0, plan->encoder_ops, err)
               : enqueue_range(exec, bucket, bytes, plan->encoder_ops, plan->nop, err);
}

/* ---- Graphs ------------------------------------------------------------------------------- */

static bool same_bucket(const ft_cuda_bucket *a, const ft_cuda_bucket *b)
{
    return a->tokens == b->tokens && a->sequences == b->sequences && a->context == b->context &&
           a->selected == b->selected && a->is_decode == b->is_decode && a->samples == b->samples &&
           a->beam_groups == b->beam_groups && a->max_beams == b->max_beams &&
           a->cross_kv == b->cross_kv && a->n_beams == b->n_beams &&
           a->is_encoder == b->is_encoder && a->few_kv_pages == b->few_kv_pages;
}

/* The graph of this bucket, or an entry for it: a free one, or the least recently used. */
static ft_cuda_graph *find_graph(ft_exec *exec, const ft_cuda_bucket *bucket)
{
    ft_cuda_graph *oldest = &exec->graphs[0];
    for (int i = 0; i < FT_CUDA_GRAPHS; i++) {
        ft_cuda_graph *g = &exec->graphs[i];
        if (g->graph != NULL && same_bucket(&g->bucket, bucket))
            return g;
        if (g->graph == NULL ? oldest->graph != NULL
                             : oldest->graph != NULL && g->last_used < oldest->last_used)
            oldest = g;
    }
    if (oldest->graph != NULL)
        (void) cudaGraphExecDestroy(oldest->graph);
    oldest->graph = NULL;
    return oldest;
}

static ft_status capture(ft_exec *exec, ft_cuda_graph *slot, const ft_cuda_bucket *bucket,
                         size_t bytes, ft_error *err)
{
    const ft_cuda_device_props *props = &exec->device->props;
    cudaGraph_t graph = NULL;
    int code = (int) cudaStreamBeginCapture(exec->stream, cudaStreamCaptureModeThreadLocal);
    if (code != 0)
        return ft_cuda_fail(err, props, code, "a graph");
    ft_status status = enqueue(exec, bucket, bytes, err);
    code = (int) cudaStreamEndCapture(exec->stream, &graph);
    if (status == FT_OK && code == 0)
        code = (int) cudaGraphInstantiate(&slot->graph, graph, 0);
    if (status == FT_OK && code != 0)
        status = ft_cuda_fail(err, props, code, "a graph");
    if (graph != NULL)
        (void) cudaGraphDestroy(graph);
    if (status != FT_OK)
        slot->graph = NULL;
    slot->bucket = *bucket;
    return status;
}

static ft_status run_graph(ft_exec *exec, const ft_cuda_bucket *bucket, size_t bytes, ft_error *err)
{
    ft_cuda_graph *g = find_graph(exec, bucket);
    if (g->graph == NULL)
        FT_TRY(capture(exec, g, bucket, bytes, err));
    g->last_used = ++exec->runs;
    int code = (int) cudaGraphLaunch(g->graph, exec->stream);
    exec->launched += code == 0;
    return code == 0 ? FT_OK : ft_cuda_fail(err, &exec->device->props, code, "a forward pass");
}

/* ---- Forward passes ----------------------------------------------------------------------- */

/*
 * Wait until the inputs of all launched passes have been copied from the pinned buffer.  The stream
 * is queried too, because a failed pass never copies its inputs.
 */
static int wait_for_staging(const ft_exec *exec)
{
    int code = (int) cudaErrorNotReady;
    while (__atomic_load_n(exec->consumed, __ATOMIC_ACQUIRE) != exec->launched &&
           code == (int) cudaErrorNotReady)
        code = (int) cudaStreamQuery(exec->stream);
    return code == (int) cudaErrorNotReady ? (int) cudaSuccess : code;
}

/* Fill the pinned buffer once the previous pass no longer needs it. */
static ft_status stage_inputs(ft_exec *exec, const ft_batch *batch, const ft_cuda_bucket *bucket,
                              size_t *bytes, ft_error *err)
{
    int code = (int) cudaSetDevice(exec->device->props.index);
    if (code == 0)
        code = wait_for_staging(exec);
    if (code != 0)
        return ft_cuda_fail(err, &exec->device->props, code, "the previous forward pass");
    *bytes = ft_cuda_stage(exec, batch, bucket);
    return FT_OK;
}

ft_status ft_cuda_run(ft_exec *exec, const ft_batch *batch, ft_counts *const *counts, ft_error *err)
{
    exec->counting = exec->exact_shape = counts != NULL;
    if (exec->counting && exec->counts == NULL)
        FT_TRY(ft_cuda_counts_open(exec, counts, err));
    ft_cuda_bucket bucket = ft_cuda_bucket_of(exec, batch);
    size_t bytes = 0;
    FT_TRY(stage_inputs(exec, batch, &bucket, &bytes, err));
    return exec->counting ? enqueue(exec, &bucket, bytes, err)
                          : run_graph(exec, &bucket, bytes, err);
}

ft_status ft_cuda_run_range(ft_exec *exec, const ft_batch *batch, int first, int end, ft_error *err)
{
    exec->counting = false;
    exec->exact_shape = true;
    ft_cuda_bucket bucket = ft_cuda_bucket_of(exec, batch);
    size_t bytes = 0;
    FT_TRY(stage_inputs(exec, batch, &bucket, &bytes, err));
    return enqueue_range(exec, &bucket, bytes, first, end, err);
}
