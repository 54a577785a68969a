/*
 * exec.c - prepares a plan for execution: device memory, cuBLAS, and access to its values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/host/exec.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"

#include <assert.h>
#include <cublas_v2.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 256, BLAS_BYTES = 32 << 20, PASS_COUNT_BYTES = 16 };

/* ---- Memory ------------------------------------------------------------------------------- */

static void find_inputs(ft_exec *exec)
{
    for (int i = 0; i < exec->plan->nvalue; i++)
        exec->reads_input[exec->plan->value[i].input] = true;
    exec->reads_input[FT_BATCH_NONE] = false;
}

static ft_cuda_workspace_fn *const workspace_fns[FT_NUM_OP_KINDS] = {
#define WORKSPACE_OWN(name) ft_cuda_##name##_workspace
#define WORKSPACE_NONE(name) NULL
#define X(NAME, name, READS, WRITES, STORAGE, WORK, RUNS, CPU, CUDA)                               \
    [FT_OP_##NAME] = WORKSPACE_##CUDA(name),
#include "kernels/ops.def"
#undef X
};

/* What the operations of a plan need, one after another. */
static ft_workspace workspace_of(const ft_exec *exec)
{
    const ft_plan *plan = exec->plan;
    ft_workspace shared = { 0 };
    for (const ft_op *op = plan->op; op < plan->op + plan->nop; op++)
        if (workspace_fns[op->kind] != NULL)
            ft_workspace_extend(
                &shared, workspace_fns[op->kind](&exec->device->props, plan, op, &exec->limits));
    return shared;
}

/* cuBLAS gets a workspace up front, so that it allocates nothing during a forward pass. */
static ft_status open_blas(ft_exec *exec, ft_error *err)
{
    FT_TRY(ft_cuda_alloc(&exec->blas_memory, &exec->device->props, BLAS_BYTES, "cuBLAS", err));
    cublasHandle_t blas = NULL;
    cublasStatus_t status = cublasCreate(&blas);
    exec->blas = blas;
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasSetStream(blas, exec->stream);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasSetWorkspace(blas, exec->blas_memory, BLAS_BYTES);
    if (status == CUBLAS_STATUS_SUCCESS)
        return FT_OK;
    return ft_fail(err, FT_EDEVICE, "cuda:%d: cuBLAS: %s", exec->device->props.index,
                   cublasGetStatusString(status));
}

static ft_status allocate(ft_exec *exec, const ft_workspace *need, ft_error *err)
{
    const ft_cuda_device_props *props = &exec->device->props;
    exec->scratch_bytes = need->scratch;
    ft_cuda_bucket max_bucket = {
        .tokens = exec->limits.tokens,
        .sequences = exec->limits.sequences,
        .query_tiles = ft_cuda_max_query_tiles(exec->limits.tokens, exec->limits.sequences),
        .selected = exec->limits.selected,
        .beam_groups = exec->limits.sequences,
    };
    size_t inputs = ft_cuda_layout_inputs(exec, &max_bucket).bytes;
    size_t arena = ft_round_up(exec->plan->arena, ALIGN);
    size_t bytes = arena + ft_round_up(exec->scratch_bytes, ALIGN) + inputs + PASS_COUNT_BYTES +
                   need->counters * sizeof *exec->counters;
    FT_TRY(ft_cuda_alloc((void **) &exec->arena, props, bytes, "memory of a session", err));
    exec->scratch = exec->arena + arena;
    exec->inputs = exec->scratch + ft_round_up(exec->scratch_bytes, ALIGN);
    exec->count = (uint32_t *) (void *) (exec->inputs + inputs);
    exec->counters = (uint32_t *) (void *) (exec->inputs + inputs + PASS_COUNT_BYTES);
    size_t mailbox = 2 * exec->limits.selected * sizeof *exec->mailbox;
    int code = (int) cudaHostAlloc((void **) &exec->staging, inputs + PASS_COUNT_BYTES + mailbox,
                                   cudaHostAllocDefault);
    if (code == 0) {
        exec->consumed = (uint32_t *) (void *) (exec->staging + inputs);
        exec->mailbox =
            (ft_cuda_mailbox_entry *) (void *) (exec->staging + inputs + PASS_COUNT_BYTES);
        memset(exec->consumed, 0, PASS_COUNT_BYTES + mailbox);
    }
    if (code == 0) /* padding rows are computed too and must not be NaN */
        code = (int) cudaMemsetAsync(exec->arena, 0, bytes, exec->stream);
    return code == 0 ? FT_OK : ft_cuda_fail(err, props, code, "memory of a session");
}

/* ---- Opening and closing ------------------------------------------------------------------ */

static ft_status init_exec(ft_exec *exec, ft_error *err)
{
    const ft_cuda_device_props *props = &exec->device->props;
    int code = (int) cudaSetDevice(props->index);
    if (code == 0)
        code = (int) cudaStreamCreateWithFlags(&exec->stream, cudaStreamNonBlocking);
    if (code != 0)
        return ft_cuda_fail(err, props, code, "a stream");
    exec->has_cache = exec->limits.pages > 0 || exec->limits.cross_kv_pages > 0;
    find_inputs(exec);
    const ft_workspace need = workspace_of(exec);
    FT_TRY(allocate(exec, &need, err));
    return need.blas ? open_blas(exec, err) : FT_OK;
}

ft_status ft_cuda_prepare(ft_exec **out, ft_device *device, const ft_plan *plan,
                          const ft_limits *limits, ft_error *err)
{
    assert(ft_cuda_has_contiguous_groups(plan));
    ft_exec *exec = ft_calloc(1, sizeof *exec);
    *out = NULL;
    if (exec == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to run a plan");
    exec->plan = plan;
    exec->device = device;
    exec->limits = *limits;
    ft_status status = init_exec(exec, err);
    if (status == FT_OK)
        *out = exec;
    else
        ft_cuda_release(exec);
    return status;
}

void ft_cuda_release(ft_exec *exec)
{
    (void) cudaSetDevice(exec->device->props.index);
    if (exec->stream != NULL)
        (void) cudaStreamSynchronize(exec->stream);
    for (int i = 0; i < FT_CUDA_GRAPHS; i++)
        if (exec->graphs[i].graph != NULL)
            (void) cudaGraphExecDestroy(exec->graphs[i].graph);
    ft_cuda_counts_close(exec);
    if (exec->blas != NULL)
        (void) cublasDestroy(exec->blas);
    (void) cudaFree(exec->blas_memory);
    (void) cudaFree(exec->arena);
    (void) cudaFreeHost(exec->staging);
    if (exec->stream != NULL)
        (void) cudaStreamDestroy(exec->stream);
    free(exec);
}

/* ---- Values ------------------------------------------------------------------------------- */

ft_status ft_cuda_write(ft_exec *exec, int value, const void *data, size_t rows, ft_error *err)
{
    const ft_value *v = &exec->plan->value[value];
    const ft_cuda_device_props *props = &exec->device->props;
    int code = (int) cudaSetDevice(props->index);
    if (code == 0)
        code = (int) cudaMemcpyAsync(exec->arena + v->offset, data,
                                     rows * (size_t) v->cols * ft_dtype_size(v->dtype),
                                     cudaMemcpyHostToDevice, exec->stream);
    if (code == 0)
        code = (int) cudaStreamSynchronize(exec->stream);
    return code == 0 ? FT_OK : ft_cuda_fail(err, props, code, v->name);
}

ft_status ft_cuda_read(const ft_exec *exec, int value, void *data, float *scales, size_t rows,
                       ft_error *err)
{
    const ft_value *v = &exec->plan->value[value];
    const ft_cuda_device_props *props = &exec->device->props;
    int code = (int) cudaSetDevice(props->index);
    if (code == 0)
        code = (int) cudaMemcpyAsync(data, exec->arena + v->offset,
                                     rows * (size_t) v->cols * ft_dtype_size(v->dtype),
                                     cudaMemcpyDeviceToHost, exec->stream);
    if (code == 0 && v->dynamic && scales != NULL)
        code = (int) cudaMemcpyAsync(scales, ft_cuda_row_scales(exec, v), rows * sizeof *scales,
                                     cudaMemcpyDeviceToHost, exec->stream);
    if (code == 0)
        code = (int) cudaStreamSynchronize(exec->stream);
    return code == 0 ? FT_OK : ft_cuda_fail(err, props, code, v->name);
}

/* ---- Sampled tokens ----------------------------------------------------------------------- */

/*
 * Poll one 8-byte half of a mailbox entry until forward pass `run` has written it.  The stream is
 * queried from time to time, because a failed pass never writes its entries.
 */
static int poll_mailbox_entry(const ft_exec *exec, const void *half, uint32_t run, uint32_t *word)
{
    enum { POLLS = 1 << 12 };
    int code = (int) cudaErrorNotReady;
    for (bool ended = false;;) {
        for (int i = 0; i < POLLS; i++) {
            uint64_t packed = __atomic_load_n((const uint64_t *) half, __ATOMIC_ACQUIRE);
            if (packed >> 32 == run) {
                *word = (uint32_t) packed;
                return (int) cudaSuccess;
            }
        }
        if (ended)
            return code == (int) cudaSuccess ? (int) cudaErrorUnknown : code;
        code = (int) cudaStreamQuery(exec->stream);
        ended = code != (int) cudaErrorNotReady;
    }
}

ft_status ft_cuda_poll_tokens(ft_exec *exec, unsigned back, int32_t *token, float *logprob,
                              size_t rows, ft_error *err)
{
    const ft_cuda_device_props *props = &exec->device->props;
    uint32_t run = exec->launched - back;
    const ft_cuda_mailbox_entry *entry = exec->mailbox + run % 2 * exec->limits.selected;
    int code = (int) cudaSetDevice(props->index);
    for (size_t i = 0; i < rows && code == 0; i++) {
        uint32_t words[2] = { 0 };
        code = poll_mailbox_entry(exec, &entry[i].token, run, &words[0]);
        if (code == 0)
            code = poll_mailbox_entry(exec, &entry[i].logprob, run, &words[1]);
        memcpy(&token[i], &words[0], sizeof *token);
        memcpy(&logprob[i], &words[1], sizeof *logprob);
    }
    return code == 0 ? FT_OK : ft_cuda_fail(err, props, code, "sampled tokens");
}

ft_status ft_cuda_wait(ft_exec *exec, ft_error *err)
{
    const ft_cuda_device_props *props = &exec->device->props;
    int code = (int) cudaSetDevice(props->index);
    if (code == 0)
        code = (int) cudaStreamSynchronize(exec->stream);
    return code == 0 ? FT_OK : ft_cuda_fail(err, props, code, "a forward pass");
}
