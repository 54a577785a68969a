/*
 * attention.c - shared by the tests of attention.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#ifdef HAVE_CUDA

#include "tests/cuda/attention/attention.h"

#include "runtime/mem.h"
#include "tests/tap/tap.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

ft_cuda_device_props props;

const shape widths[] = {
    SHAPE(12, 64, 128, 67, 1, 64, 65),
    SHAPE(3, 64, 5, 31, 32, 33, 0, 96, 97),
    SHAPE(2, 64, 129, 255, 256, 17),
    SHAPE(2, 64, 257, 300, 383, 384, 40),
    SHAPE(2, 64, 385, 3, 640, 447),
    SHAPE(2, 32, 128, 77),
    SHAPE(3, 32, 200, 129),
    SHAPE(2, 32, 384, 350, 2),
    SHAPE(2, 32, 513, 70),
    SHAPE(2, 128, 128, 77),
    SHAPE(1, 128, 200, 256),
    SHAPE(2, 128, 384, 290, 16),
    SHAPE(1, 128, 600, 70),
    SHAPE(3, 16, 100, 400),
    SHAPE(3, 24, 100, 270),
    SHAPE(12, 26, 7, 1, 40, 130),
    SHAPE(2, 33, 64, 129),
    SHAPE(3, 1, 64, 65, 3),
    SHAPE(2, 40, 90, 300),
    SHAPE(2, 48, 90, 300),
    SHAPE(2, 80, 90, 410),
    SHAPE(2, 96, 90, 300),
    SHAPE(2, 104, 120, 500),
    SHAPE(1, 160, 90, 300),
    SHAPE(1, 200, 90, 300),
    SHAPE(2, 256, 90, 300),
    SHAPE(1, 255, 33, 70),
};
const size_t width_count = FT_COUNT(widths);

/* ---- Memory, numbers --------------------------------------------------------------------------
 */

void *upload(const void *data, size_t bytes)
{
    void *memory;
    must(cudaMalloc(&memory, bytes + GUARD), "cudaMalloc");
    must(cudaMemset(memory, POISON, bytes + GUARD), "cudaMemset");
    if (data != NULL)
        must(cudaMemcpy(memory, data, bytes, cudaMemcpyHostToDevice), "upload");
    return memory;
}

void *download(const void *memory, size_t bytes)
{
    void *data = must_have(bytes);
    must(cudaMemcpy(data, memory, bytes, cudaMemcpyDeviceToHost), "download");
    return data;
}

static uint64_t state = 0x9e3779b97f4a7c15u;

uint32_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t) (state >> 32);
}

/* Inserts query tiles of length 0 between the others, as a padded batch has at its end. */
static void add_sequence(batch *b, int length)
{
    for (int query = 0; query < length; query += FT_CUDA_QUERY_TILE)
        b->block[b->n_query_tiles++] =
            (ft_cuda_query_tile){ (int32_t) b->tokens, length, query, -1 };
    b->block[b->n_query_tiles++] = (ft_cuda_query_tile){ 0, 0, 0, 0 };
    b->tokens += (size_t) length;
    b->longest = (size_t) length > b->longest ? (size_t) length : b->longest;
    b->start[++b->sequences] = (int32_t) b->tokens;
}

void batch_init(batch *b, const shape *s)
{
    size_t times = s->times > 0 ? (size_t) s->times : 1, sequences = 0, blocks = 0;
    for (; sequences < MAX_LENGTHS && s->length[sequences] >= 0; sequences++)
        blocks += (size_t) s->length[sequences] / FT_CUDA_QUERY_TILE + 2;
    *b = (batch){ .heads = s->heads, .head_size = s->head_size };
    b->cols = (size_t) s->heads * (size_t) s->head_size;
    b->start = must_have((times * sequences + 1) * sizeof *b->start);
    b->block = must_have(times * blocks * sizeof *b->block);
    b->start[0] = 0;
    for (size_t i = 0; i < times * sequences; i++)
        add_sequence(b, s->length[i % sequences]);
    b->device_blocks = upload(b->block, b->n_query_tiles * sizeof *b->block);
    b->device_start = upload(b->start, (b->sequences + 1) * sizeof *b->start);
}

void batch_fini(batch *b)
{
    free(b->start);
    free(b->block);
    cudaFree(b->device_blocks);
    cudaFree(b->device_start);
}

const char *name_of(const shape *s)
{
    static char text[128];
    int used = snprintf(text, sizeof text, "%d heads of %d, lengths", s->heads, s->head_size);
    for (int i = 0; i < MAX_LENGTHS && s->length[i] >= 0; i++)
        used += snprintf(text + used, sizeof text - (size_t) used, " %d", s->length[i]);
    return text;
}

#endif
