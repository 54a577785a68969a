/*
 * upload.c - uploads all weights of a model to the device.
 *
 * They share one allocation: first the matrices, then the prepacked int8 matrices, then scales,
 * zero points and vectors.  Where all kernels that read an int8 matrix read it prepacked, it is in
 * device memory in COL4_4R2_8C only until it has been prepacked.  Within each section weights keep
 * the order of the model, except that those of a contiguous fusion group (kernels/fused_ops.h)
 * follow its first weight in the order of the group.  One GEMM can then compute the whole group.
 *
 * What has been read ahead of the file moves to its place on the device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/host/device.h"
#include "kernels/cuda/host/h2d_copy.h"
#include "kernels/cuda/host/staging.h"
#include "kernels/fused_ops.h"
#include "kernels/layout.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"

#include <stdlib.h>

enum { ALIGN = FT_CUDA_WEIGHT_ALIGN };

/* ---- Layout ------------------------------------------------------------------------------- */

typedef enum section { MATRICES, PREPACKED, SCALES, ZEROS, VECTORS, SECTIONS } section;

/* The weights of a model and their offsets in device memory. */
typedef struct model_weights {
    const ft_device *device;
    ft_weight *weight;
    int count;
    int *order;     /* [count]: order of the weights in a section */
    size_t *offset; /* [count][SECTIONS]: bytes */
    bool *staged;   /* [count]: only the prepacked matrix stays in device memory */
} model_weights;

static bool is_vector(const ft_weight *w)
{
    return w->rows == 1;
}

/* Scales per row, or per group of a group-wise weight. */
static size_t scale_bytes(const ft_weight *w)
{
    if (w->groupwise.scale != NULL)
        return ft_groupwise_scale_count(&w->groupwise, w->rows, w->cols) *
               sizeof *w->groupwise.scale;
    return w->scale != NULL ? w->rows * sizeof *w->scale : 0;
}

static const void *scales_of(const ft_weight *w)
{
    return w->groupwise.scale != NULL ? (const void *) w->groupwise.scale : w->scale;
}

static size_t zero_bytes(const ft_weight *w)
{
    return w->groupwise.zero != NULL ? ft_groupwise_scale_count(&w->groupwise, w->rows, w->cols)
                                     : 0;
}

static bool has_prepacked(const ft_device *device, const ft_weight *w)
{
    return device->props.has_wgmma && w->layout == FT_COL4_4R2_8C;
}

/*
 * Find the int8 matrices that are only read prepacked: those of linears whose shape the wgmma
 * kernels support.  A kernel requested by FT_CUDA_GEMM may read COL4_4R2_8C.
 */
static void find_staged(const model_weights *m, const ft_plan *plan)
{
    const char *requested = getenv("FT_CUDA_GEMM");
    bool none = plan == NULL || (requested != NULL && *requested != '\0');
    for (int i = 0; i < m->count; i++)
        m->staged[i] = !none && has_prepacked(m->device, &m->weight[i]) &&
                       !is_vector(&m->weight[i]) && m->weight[i].cols % 16 == 0;
    for (int i = 0; !none && i < plan->nop; i++)
        for (int k = 0; k < FT_MAX_WEIGHTS && plan->op[i].kind != FT_OP_LINEAR; k++)
            if (plan->op[i].weight[k] >= 0)
                m->staged[plan->op[i].weight[k]] = false;
}

/* Bytes of a weight in a section; 0: none. */
static size_t bytes_in(const model_weights *m, int index, section section_id)
{
    const ft_weight *w = &m->weight[index];
    switch (section_id) {
    case MATRICES:
        return is_vector(w) || m->staged[index] ? 0 : ft_weight_bytes(w);
    case PREPACKED:
        return has_prepacked(m->device, w) ? ft_cuda_prepacked_bytes(w->rows, w->cols) : 0;
    case SCALES:
        return scale_bytes(w);
    case ZEROS:
        return zero_bytes(w);
    case VECTORS:
        return is_vector(w) ? ft_weight_bytes(w) : 0;
    case SECTIONS:
        break;
    }
    return 0;
}

/* Assign an offset to each weight in each section; returns the total size. */
static size_t layout_weights(const model_weights *m)
{
    size_t at = 0;
    for (int section_id = 0; section_id < SECTIONS; section_id++)
        for (int k = 0; k < m->count; k++) {
            int i = m->order[k];
            m->offset[i * SECTIONS + section_id] = at;
            at += ft_round_up(bytes_in(m, i, (section) section_id), ALIGN);
        }
    return at;
}

/* Bytes of a span of host memory that have been read ahead. */
static size_t bytes_ahead(const ft_cuda_h2d_ahead *ahead, const void *from, size_t bytes)
{
    uintptr_t at = (uintptr_t) from - (uintptr_t) ahead->from; /* wraps before the file */
    return ahead->memory != NULL && at < ahead->bytes ? ft_min_size(bytes, ahead->bytes - at) : 0;
}

static const char *memory_ahead(const ft_cuda_h2d_ahead *ahead, const void *from)
{
    return ahead->memory + ((const char *) from - ahead->from);
}

/* All host data in the order of device memory, without staged matrices; returns their number. */
static int list_resident(ft_cuda_h2d_span *out, const model_weights *m, char *memory)
{
    int n_spans = 0;
    for (int section_id = 0; section_id < SECTIONS; section_id++)
        for (int k = 0; k < m->count; k++) {
            int i = m->order[k];
            const ft_weight *w = &m->weight[i];
            size_t bytes = bytes_in(m, i, (section) section_id);
            const void *from = section_id == SCALES  ? scales_of(w)
                               : section_id == ZEROS ? w->groupwise.zero
                                                     : w->data;
            if (bytes > 0 && section_id != PREPACKED)
                out[n_spans++] =
                    (ft_cuda_h2d_span){ from, memory + m->offset[i * SECTIONS + section_id], bytes,
                                        false };
        }
    return n_spans;
}

/* Copy what has been read ahead of these spans; the rest of them remains. */
static int copy_ahead(cudaStream_t stream, const ft_cuda_h2d_ahead *ahead, ft_cuda_h2d_span *spans,
                      int *count)
{
    int rest = 0, status = 0;
    for (int i = 0; i < *count && status == 0; i++) {
        ft_cuda_h2d_span p = spans[i];
        size_t done = bytes_ahead(ahead, p.from, p.bytes);
        if (done > 0)
            status = (int) cudaMemcpyAsync(p.to, memory_ahead(ahead, p.from), done,
                                           cudaMemcpyDeviceToDevice, stream);
        if (done < p.bytes)
            spans[rest++] = (ft_cuda_h2d_span){ p.from + done, p.to + done, p.bytes - done, false };
    }
    *count = rest;
    return status;
}

/* ---- Uploading ---------------------------------------------------------------------------- */

/* Point the weights to device memory, and prepack the int8 matrices there. */
static int set_device_pointers(cudaStream_t stream, const model_weights *m, char *memory)
{
    int status = 0;
    for (int i = 0; i < m->count; i++) {
        ft_weight *w = &m->weight[i];
        const size_t *at = &m->offset[i * SECTIONS];
        bool is_prepacked = has_prepacked(m->device, w);
        w->data = m->staged[i] ? NULL : memory + at[is_vector(w) ? VECTORS : MATRICES];
        if (w->scale != NULL)
            w->scale = (const float *) (void *) (memory + at[SCALES]);
        if (w->groupwise.scale != NULL)
            w->groupwise.scale = (const uint16_t *) (void *) (memory + at[SCALES]);
        if (w->groupwise.zero != NULL)
            w->groupwise.zero = (const uint8_t *) (memory + at[ZEROS]);
        if (is_prepacked)
            w->prepacked = memory + at[PREPACKED];
        if (is_prepacked && !m->staged[i] && status == 0)
            status = ft_cuda_prepack(stream, (int8_t *) memory + at[PREPACKED], w->data, w->rows,
                                     w->cols);
    }
    return status;
}

/* Prepack the matrices that only stay prepacked and have been read ahead; list the others. */
static int prepack_ahead(ft_cuda_staged_matrix *others, int *count, cudaStream_t stream,
                         const model_weights *m, char *memory, const ft_cuda_h2d_ahead *ahead)
{
    int status = 0;
    *count = 0;
    for (int k = 0; k < m->count && status == 0; k++) {
        int i = m->order[k];
        const ft_weight *w = &m->weight[i];
        int8_t *prepacked = (int8_t *) memory + m->offset[i * SECTIONS + PREPACKED];
        size_t bytes = ft_weight_bytes(w);
        if (m->staged[i] && bytes_ahead(ahead, w->data, bytes) == bytes)
            status = ft_cuda_prepack(
                stream, prepacked, (const int8_t *) memory_ahead(ahead, w->data), w->rows, w->cols);
        else if (m->staged[i])
            others[(*count)++] = (ft_cuda_staged_matrix){ .weight = w, .prepacked = prepacked };
    }
    return status;
}

/* Copy all weights in one queue, so that the bus is never idle; the staged matrices come first. */
static int copy_all(ft_cuda_h2d_copier *copier, const model_weights *m, char *memory,
                    const ft_cuda_h2d_ahead *ahead, ft_cuda_staged_matrix *staged,
                    ft_cuda_h2d_span *spans)
{
    cudaStream_t stream = ft_cuda_h2d_stream(copier);
    ft_cuda_staging staging = { 0 };
    int n_staged, n_resident = 0;
    int status = prepack_ahead(staged, &n_staged, stream, m, memory, ahead);
    if (status == 0)
        status = ft_cuda_staging_init(&staging, staged, n_staged);
    if (status == 0) {
        ft_cuda_staging_spans(spans, &staging);
        n_resident = list_resident(spans + n_staged, m, memory);
        status = copy_ahead(stream, ahead, spans + n_staged, &n_resident);
    }
    if (status == 0)
        status = ft_cuda_h2d_send(copier, spans, n_staged + n_resident, ft_cuda_staging_exchange,
                                  &staging);
    int copied = (int) cudaStreamSynchronize(stream), prepacked = ft_cuda_staging_fini(&staging);
    return status != 0 ? status : copied != 0 ? copied : prepacked;
}

static int send_all(ft_device *device, const model_weights *m, char *memory,
                    ft_cuda_h2d_span *spans)
{
    ft_cuda_h2d_copier *copier = NULL;
    ft_cuda_h2d_ahead ahead;
    ft_cuda_staged_matrix *staged = ft_calloc((size_t) m->count, sizeof *staged);
    int status = ft_cuda_h2d_finish(device->opening, &copier, &ahead);
    device->opening = NULL;
    if (status == 0 && staged == NULL)
        status = (int) cudaErrorMemoryAllocation;
    if (status == 0)
        status = copy_all(copier, m, memory, &ahead, staged, spans);
    if (status == 0)
        status = set_device_pointers(ft_cuda_h2d_stream(copier), m, memory);
    int waited = copier != NULL ? (int) cudaStreamSynchronize(ft_cuda_h2d_stream(copier)) : 0;
    (void) cudaFree(ahead.memory);
    ft_cuda_h2d_finish_close(device->closing);
    device->closing = ft_cuda_h2d_begin_close(copier, device->props.index);
    free(staged);
    return status != 0 ? status : waited;
}

/* Allocate memory for an upload; the device owns it. */
static ft_status alloc_weights(ft_device *device, size_t bytes, char **out, ft_error *err)
{
    size_t capacity = (size_t) device->uploads + 1;
    char **grown = realloc(device->weights, capacity * sizeof *grown);
    if (grown == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to upload weights");
    device->weights = grown;
    FT_TRY(ft_cuda_alloc((void **) out, &device->props, bytes, "weights", err));
    device->weights[device->uploads++] = *out;
    return FT_OK;
}

ft_status ft_cuda_upload(ft_device *device, const ft_plan *plan, ft_weight *weights, int count,
                         ft_error *err)
{
    char *memory = NULL;
    model_weights m = { .device = device, .weight = weights, .count = count };
    m.order = ft_group_weight_order(plan, count);
    m.offset = ft_calloc((size_t) count * SECTIONS, sizeof *m.offset);
    m.staged = ft_calloc((size_t) count, sizeof *m.staged);
    ft_cuda_h2d_span *spans = ft_calloc((size_t) count * SECTIONS, sizeof *spans);
    ft_status status = FT_OK;
    int code = (int) cudaSetDevice(device->props.index);
    if (m.order == NULL || m.offset == NULL || m.staged == NULL || spans == NULL)
        status = ft_fail(err, FT_ENOMEM, "no memory to upload %d weights", count);
    else
        find_staged(&m, plan);
    if (status == FT_OK && code == 0)
        status = alloc_weights(device, layout_weights(&m), &memory, err);
    if (status == FT_OK && code == 0)
        code = send_all(device, &m, memory, spans);
    if (status == FT_OK && code != 0)
        status = ft_cuda_fail(err, &device->props, code, "weights");
    free(spans);
    free(m.staged);
    free(m.offset);
    free(m.order);
    return status;
}

/* ---- Contiguous groups -------------------------------------------------------------------- */

/* Whether `b` begins right after the aligned `bytes` bytes at `a`; true where one is NULL. */
static bool follows(const void *a, const void *b, size_t bytes)
{
    return a == NULL || b == NULL ||
           (const char *) b == (const char *) a + ft_round_up(bytes, ALIGN);
}

static bool weight_follows(const ft_weight *w, const ft_weight *next)
{
    return follows(w->data, next->data, ft_weight_bytes(w)) &&
           follows(w->prepacked, next->prepacked, ft_cuda_prepacked_bytes(w->rows, w->cols)) &&
           follows(scales_of(w), scales_of(next), scale_bytes(w)) &&
           follows(w->groupwise.zero, next->groupwise.zero, zero_bytes(w));
}

bool ft_cuda_has_contiguous_groups(const ft_plan *plan)
{
    bool contiguous = true;
    for (int g = 0; contiguous && g < plan->ngroup; g++) {
        const ft_fusion_group *group = &plan->group[g];
        for (int i = 1; contiguous && group->contiguous && i < ft_group_linears(group); i++) {
            const ft_op *op = &plan->op[ft_group_first_linear(group) + i];
            const int16_t *w = op[-1].weight, *next = op->weight;
            contiguous = weight_follows(&plan->weight[w[0]], &plan->weight[next[0]]) &&
                         (w[1] < 0 || weight_follows(&plan->weight[w[1]], &plan->weight[next[1]]));
        }
    }
    return contiguous;
}
