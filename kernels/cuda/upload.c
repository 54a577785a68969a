/*
 * upload.c - all weights of a model to the device, through a ring of pinned buffers.
 *
 * The device gets one allocation: first the matrices, then the int8 matrices once more in the order
 * of the device's own product, then scales, then vectors.  So the weights of queries, keys and
 * values, which follow each other in a model, follow each other here too, and can be one product.
 *
 * A pinned copy runs at the speed of the bus; pageable memory does not.  Threads fill one buffer
 * from the mapped file while the others travel.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/device.h"
#include "kernels/layout.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFERS = 4, BUFFER_BYTES = 8 << 20, PIECE = 256 << 10, MOST_THREADS = 8, ALIGN = 256 };

/* ---- The ring ----------------------------------------------------------------------------- */

typedef struct ring {
    char *memory; /* [BUFFERS][BUFFER_BYTES], pinned */
    cudaEvent_t sent[BUFFERS];
    cudaStream_t stream;
    int buffer;   /* the one being filled */
    size_t used;  /* bytes in it */
    char *target; /* where its first byte goes */
    int threads;
} ring;

static int ring_init(ring *r)
{
    int status = (int) cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking);
    if (status == 0)
        status = (int) cudaHostAlloc((void **) &r->memory, (size_t) BUFFERS * BUFFER_BYTES,
                                     cudaHostAllocDefault);
    for (int i = 0; i < BUFFERS && status == 0; i++)
        status = (int) cudaEventCreateWithFlags(&r->sent[i], cudaEventDisableTiming);
    r->threads = omp_get_num_procs() < MOST_THREADS ? omp_get_num_procs() : MOST_THREADS;
    return status;
}

static void ring_fini(ring *r)
{
    for (int i = 0; i < BUFFERS; i++)
        if (r->sent[i] != NULL)
            (void) cudaEventDestroy(r->sent[i]);
    if (r->stream != NULL)
        (void) cudaStreamDestroy(r->stream);
    (void) cudaFreeHost(r->memory);
}

/* Send what is in the buffer and take the next one, as soon as its last copy has left. */
static int ring_flush(ring *r)
{
    if (r->used == 0)
        return 0;
    int status = (int) cudaMemcpyAsync(r->target, r->memory + (size_t) r->buffer * BUFFER_BYTES,
                                       r->used, cudaMemcpyHostToDevice, r->stream);
    if (status == 0)
        status = (int) cudaEventRecord(r->sent[r->buffer], r->stream);
    r->buffer = (r->buffer + 1) % BUFFERS;
    r->used = 0;
    if (status == 0)
        status = (int) cudaEventSynchronize(r->sent[r->buffer]);
    return status;
}

static void copy_by_threads(char *to, const char *from, size_t bytes, int threads)
{
    size_t pieces = (bytes + PIECE - 1) / PIECE;
#pragma omp parallel for num_threads(threads) schedule(static) if (pieces > 1)
    for (size_t i = 0; i < pieces; i++)
        memcpy(to + i * PIECE, from + i * PIECE, ft_min_size(PIECE, bytes - i * PIECE));
}

/* Copy `bytes` to device memory; runs that follow each other there share buffers. */
static int ring_put(ring *r, char *target, const void *data, size_t bytes)
{
    const char *from = data;
    while (bytes > 0) {
        size_t gap = 0;
        if (r->used > 0) {
            gap = (size_t) (target - r->target) - r->used;
            if (target < r->target + r->used || gap >= ALIGN || r->used + gap >= BUFFER_BYTES) {
                int status = ring_flush(r);
                if (status != 0)
                    return status;
                gap = 0;
            }
        }
        char *to = r->memory + (size_t) r->buffer * BUFFER_BYTES + r->used;
        if (r->used == 0)
            r->target = target;
        memset(to, 0, gap);
        size_t part = ft_min_size(bytes, BUFFER_BYTES - r->used - gap);
        copy_by_threads(to + gap, from, part, r->threads);
        r->used += gap + part;
        from += part;
        target += part;
        bytes -= part;
    }
    return 0;
}

/* ---- Weights ------------------------------------------------------------------------------ */

typedef enum region { MATRICES, TILES, SCALES, VECTORS, REGIONS } region;

static size_t stored_bytes(const ft_weight *w)
{
    return w->layout == FT_ROW ? w->rows * w->cols * ft_dtype_size(w->dtype)
                               : ft_layout_bytes(w->layout, w->rows, w->cols);
}

static bool is_vector(const ft_weight *w)
{
    return w->rows == 1;
}

static bool has_tiles(const ft_device *device, const ft_weight *w)
{
    return device->chip.has_wgmma && w->layout == FT_COL4_4R2_8C;
}

/* Bytes of a weight in a region; 0: it has no part there. */
static size_t bytes_in(const ft_device *device, const ft_weight *w, region where)
{
    switch (where) {
    case MATRICES:
        return is_vector(w) ? 0 : stored_bytes(w);
    case TILES:
        return has_tiles(device, w) ? ft_cuda_tiles_bytes(w->rows, w->cols) : 0;
    case SCALES:
        return w->scale != NULL ? w->rows * sizeof(float) : 0;
    case VECTORS:
        return is_vector(w) ? stored_bytes(w) : 0;
    case REGIONS:
        break;
    }
    return 0;
}

/* Where every part of every weight goes: region by region, weights in order. */
static size_t place(const ft_device *device, const ft_weight *weights, int count, size_t *offset)
{
    size_t at = 0;
    for (int where = 0; where < REGIONS; where++)
        for (int i = 0; i < count; i++) {
            offset[i * REGIONS + where] = at;
            at += ft_round_up(bytes_in(device, &weights[i], (region) where), ALIGN);
        }
    return at;
}

static int send(ring *r, const ft_device *device, ft_weight *weights, int count,
                const size_t *offset, char *memory, region where)
{
    int status = 0;
    for (int i = 0; i < count && status == 0; i++) {
        ft_weight *w = &weights[i];
        size_t bytes = bytes_in(device, w, where);
        char *target = memory + offset[i * REGIONS + (int) where];
        if (bytes == 0)
            continue;
        status = ring_put(r, target, where == SCALES ? (const void *) w->scale : w->data, bytes);
        if (where == SCALES)
            w->scale = (const float *) (void *) target;
        else
            w->data = target;
    }
    return status == 0 ? ring_flush(r) : status;
}

static int retile(ring *r, const ft_device *device, ft_weight *weights, int count,
                  const size_t *offset, char *memory)
{
    int status = 0;
    for (int i = 0; i < count && status == 0; i++)
        if (has_tiles(device, &weights[i])) {
            char *tiles = memory + offset[i * REGIONS + TILES];
            status = ft_cuda_tile(r->stream, (int8_t *) tiles, weights[i].data, weights[i].rows,
                                  weights[i].cols);
            weights[i].tiles = tiles;
        }
    return status;
}

static int send_all(const ft_device *device, ft_weight *weights, int count, const size_t *offset,
                    char *memory)
{
    ring r = { 0 };
    int status = ring_init(&r);
    for (int where = 0; where < REGIONS && status == 0; where++)
        if (where != TILES)
            status = send(&r, device, weights, count, offset, memory, (region) where);
    if (status == 0)
        status = retile(&r, device, weights, count, offset, memory);
    if (status == 0)
        status = (int) cudaStreamSynchronize(r.stream);
    ring_fini(&r);
    return status;
}

/* Memory for an upload, owned by the device. */
static ft_status claim(ft_device *device, size_t bytes, char **out, ft_error *err)
{
    size_t room = (size_t) device->uploads + 1;
    char **grown = realloc(device->weights, room * sizeof *grown);
    if (grown == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to upload weights");
    device->weights = grown;
    FT_TRY(ft_cuda_alloc((void **) out, &device->chip, bytes, "weights", err));
    device->weights[device->uploads++] = *out;
    return FT_OK;
}

ft_status ft_cuda_upload(ft_device *device, ft_weight *weights, int count, ft_error *err)
{
    char *memory = NULL;
    size_t *offset = ft_array((size_t) count * REGIONS, sizeof *offset);
    if (offset == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to place %d weights", count);
    int code = (int) cudaSetDevice(device->chip.index);
    ft_status status =
        code == 0 ? claim(device, place(device, weights, count, offset), &memory, err) : FT_OK;
    if (status == FT_OK && code == 0)
        code = send_all(device, weights, count, offset, memory);
    if (code != 0)
        status = ft_cuda_fail(err, &device->chip, code, "weights");
    free(offset);
    return status;
}
