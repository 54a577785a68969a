/*
 * upload.c - all weights of a model to the device.
 *
 * The device gets one allocation: first the matrices, then the int8 matrices once more in the order
 * of the device's own product, then scales and zeros, then vectors.  So the weights of queries,
 * keys and values, which follow each other in a model, follow each other here too, and can be one
 * product.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/host/device.h"
#include "kernels/cuda/host/h2d_copy.h"
#include "kernels/layout.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"

#include <stdlib.h>

enum { ALIGN = 256 };

/* ---- Places ------------------------------------------------------------------------------- */

typedef enum region { MATRICES, TILES, SCALES, ZEROS, VECTORS, REGIONS } region;

static bool is_vector(const ft_weight *w)
{
    return w->rows == 1;
}

/* Scales of rows, or of blocks. */
static size_t scale_bytes(const ft_weight *w)
{
    if (w->blocks.scale != NULL)
        return ft_blocks_count(&w->blocks, w->rows, w->cols) * sizeof *w->blocks.scale;
    return w->scale != NULL ? w->rows * sizeof *w->scale : 0;
}

static const void *scales_of(const ft_weight *w)
{
    return w->blocks.scale != NULL ? (const void *) w->blocks.scale : w->scale;
}

static size_t zero_bytes(const ft_weight *w)
{
    return w->blocks.zero != NULL ? ft_blocks_count(&w->blocks, w->rows, w->cols) : 0;
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
        return is_vector(w) ? 0 : ft_weight_bytes(w);
    case TILES:
        return has_tiles(device, w) ? ft_cuda_tiles_bytes(w->rows, w->cols) : 0;
    case SCALES:
        return scale_bytes(w);
    case ZEROS:
        return zero_bytes(w);
    case VECTORS:
        return is_vector(w) ? ft_weight_bytes(w) : 0;
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

/* All that the host has, in the order of the device's memory; returns how many parts that are. */
static int pack(ft_cuda_part *out, const ft_device *device, const ft_weight *weights, int count,
                const size_t *offset)
{
    int parts = 0;
    for (int where = 0; where < REGIONS; where++)
        for (int i = 0; i < count; i++) {
            const ft_weight *w = &weights[i];
            size_t bytes = bytes_in(device, w, (region) where);
            const void *from = where == SCALES  ? scales_of(w)
                               : where == ZEROS ? w->blocks.zero
                                                : w->data;
            if (bytes > 0 && where != TILES)
                out[parts++] = (ft_cuda_part){ from, offset[i * REGIONS + where], bytes };
        }
    return parts;
}

/* ---- Uploading ---------------------------------------------------------------------------- */

/* From now on the weights are the device's; their tiles are made there. */
static int take_over(cudaStream_t stream, const ft_device *device, ft_weight *weights, int count,
                     const size_t *offset, char *memory)
{
    int status = 0;
    for (int i = 0; i < count; i++) {
        ft_weight *w = &weights[i];
        const size_t *at = &offset[i * REGIONS];
        bool tiled = has_tiles(device, w);
        w->data = memory + at[is_vector(w) ? VECTORS : MATRICES];
        if (w->scale != NULL)
            w->scale = (const float *) (void *) (memory + at[SCALES]);
        if (w->blocks.scale != NULL)
            w->blocks.scale = (const uint16_t *) (void *) (memory + at[SCALES]);
        if (w->blocks.zero != NULL)
            w->blocks.zero = (const uint8_t *) (memory + at[ZEROS]);
        if (tiled)
            w->tiles = memory + at[TILES];
        if (tiled && status == 0)
            status = ft_cuda_tile(stream, (int8_t *) memory + at[TILES], w->data, w->rows, w->cols);
    }
    return status;
}

static int send_all(const ft_device *device, ft_weight *weights, int count, const size_t *offset,
                    char *memory, ft_cuda_part *part)
{
    ft_cuda_ferry *ferry;
    int parts = pack(part, device, weights, count, offset), status = ft_cuda_ferry_open(&ferry);
    if (status == 0)
        status = ft_cuda_ferry_send(ferry, memory, part, parts);
    if (status == 0)
        status = take_over(ft_cuda_ferry_stream(ferry), device, weights, count, offset, memory);
    int waited = ft_cuda_ferry_close(ferry);
    return status != 0 ? status : waited;
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
    ft_cuda_part *part = ft_array((size_t) count * REGIONS, sizeof *part);
    ft_status status = FT_OK;
    int code = (int) cudaSetDevice(device->chip.index);
    if (offset == NULL || part == NULL)
        status = ft_fail(err, FT_ENOMEM, "no memory to place %d weights", count);
    else if (code == 0)
        status = claim(device, place(device, weights, count, offset), &memory, err);
    if (status == FT_OK && code == 0)
        code = send_all(device, weights, count, offset, memory, part);
    if (status == FT_OK && code != 0)
        status = ft_cuda_fail(err, &device->chip, code, "weights");
    free(part);
    free(offset);
    return status;
}
