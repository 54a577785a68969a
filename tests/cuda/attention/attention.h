/*
 * attention.h - shared by attention.t: batches of sequences, and memory on host and device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_CUDA_ATTENTION_ATTENTION_H
#define FT_TESTS_CUDA_ATTENTION_ATTENTION_H

#include "tests/lib/ops/gpu.h"

enum { POISON = 0x5a, GUARD = 256, MAX_LENGTHS = 12 };

/* A batch of sequences, with the heads of each. */
typedef struct shape {
    int heads, head_size;
    int length[MAX_LENGTHS];  /* terminated by a negative one, or the end of the array */
    int times;                /* repetitions of the whole batch; 0: one */
} shape;

#define LENGTHS(...)                                                                               \
    {                                                                                              \
        __VA_ARGS__, -1                                                                            \
    }
#define SHAPE(H, D, ...)                                                                           \
    {                                                                                              \
        .heads = H, .head_size = D, .length = LENGTHS(__VA_ARGS__)                                 \
    }

typedef struct batch {
    int heads, head_size;
    size_t sequences, tokens, longest, cols, n_query_tiles;
    int32_t *start;
    ft_cuda_query_tile *block;
    void *device_blocks, *device_start;
} batch;

extern ft_cuda_device_props props;

/* Device memory followed by poison; data NULL: all poison.  A failed call ends the test. */
void *upload(const void *data, size_t bytes);
void *download(const void *memory, size_t bytes);

uint32_t draw(void);

void batch_init(batch *b, const shape *s);
void batch_fini(batch *b);
const char *name_of(const shape *s);

/* The heads and lengths that every kernel is tested with. */
extern const shape widths[];
extern const size_t width_count;

void test_floats_and_counts(void); /* attention-floats.c */
void test_sequences_alone(void);   /* attention-alone.c */

#endif
