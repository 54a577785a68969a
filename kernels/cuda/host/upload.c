/*
 * upload.c - uploads all weights of a model to the device.
 *
 * They share one allocation: first the matrices, then the prepacked int8 matrices, then scales,
 * zero points and vectors.  Where all kernels that read an int8 matrix read it prepacked, it is in
 * device memory in COL4_4R2_8C only until it has been prepacked.  Within each section weights keep
 * the order of the model, except that those of a contiguous fusion group (kernels/fused_ops.h)
 * follow its first weight in the order of the group.  One GEMM can then compute the whole group.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/host/device.h"
#include "kernels/cuda/host/h2d_copy.h"
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

/* List all host data in the order of device memory; returns the number of spans. */
static int list_spans(ft_cuda_h2d_span *out, const model_weights *m)
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
                    (ft_cuda_h2d_span){ from, m->offset[i * SECTIONS + section_id], bytes };
        }
    return n_spans;
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

/* The staged matrices one after the other at the same place, where each is prepacked from. */
typedef struct staging {
    const model_weights *m;
    char *memory, *buffer; /* all weights; room for the largest staged matrix */
    int *index;            /* [spans]: of the weights */
    size_t bytes;          /* of the buffer */
} staging;

static int list_staged(ft_cuda_h2d_span *out, staging *s)
{
    const model_weights *m = s->m;
    int n_spans = 0;
    for (int k = 0; k < m->count; k++) {
        int i = m->order[k];
        if (!m->staged[i])
            continue;
        size_t bytes = ft_weight_bytes(&m->weight[i]);
        s->index[n_spans] = i;
        s->bytes = bytes > s->bytes ? bytes : s->bytes;
        out[n_spans++] = (ft_cuda_h2d_span){ m->weight[i].data, 0, bytes };
    }
    return n_spans;
}

static int prepack_staged(const void *user, int span, cudaStream_t stream)
{
    const staging *s = user;
    int i = s->index[span];
    const ft_weight *w = &s->m->weight[i];
    return ft_cuda_prepack(stream, (int8_t *) s->memory + s->m->offset[i * SECTIONS + PREPACKED],
                           (const int8_t *) s->buffer, w->rows, w->cols);
}

static int send_staged(ft_cuda_h2d_copier *copier, const model_weights *m, char *memory,
                       ft_cuda_h2d_span *spans)
{
    staging s = { .m = m, .memory = memory };
    s.index = ft_calloc((size_t) m->count, sizeof *s.index);
    if (s.index == NULL)
        return (int) cudaErrorMemoryAllocation;
    int n_spans = list_staged(spans, &s), status = 0;
    if (n_spans > 0)
        status = (int) cudaMalloc((void **) &s.buffer, s.bytes);
    if (n_spans > 0 && status == 0)
        status = ft_cuda_h2d_send_each(copier, s.buffer, spans, n_spans, prepack_staged, &s);
    int waited = (int) cudaStreamSynchronize(ft_cuda_h2d_stream(copier));
    (void) cudaFree(s.buffer);
    free(s.index);
    return status != 0 ? status : waited;
}

static int send_all(ft_device *device, const model_weights *m, char *memory,
                    ft_cuda_h2d_span *spans)
{
    ft_cuda_h2d_copier *copier;
    int status = ft_cuda_h2d_finish(device->opening, &copier);
    device->opening = NULL;
    if (status == 0)
        status = send_staged(copier, m, memory, spans);
    if (status == 0)
        status = ft_cuda_h2d_send(copier, memory, spans, list_spans(spans, m));
    if (status == 0)
        status = set_device_pointers(ft_cuda_h2d_stream(copier), m, memory);
    int waited = ft_cuda_h2d_close(copier);
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
