/*
 * attend_kv.h - inside cuda-attend.t and cuda-attend-store.t: texts that are stored and attended
 * to in runs of any kind.
 *
 * A world has a few texts with queries, keys and values for each token, and a cache on the device
 * whose pages they share in random order.  What no token has been written to is NaN.  The cache may
 * be a memory, of which every query sees all; or neighbouring texts are lanes, whose tokens lie in
 * the pages of random ones of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_CUDA_ATTENTION_ATTEND_KV_H
#define FT_TESTS_CUDA_ATTENTION_ATTEND_KV_H

#include "kernels/kv_cache.h"
#include "tests/lib/ops/gpu.h"
#include "tests/lib/random.h"

enum { MOST_TEXTS = 72 };

/* What an operation is told. */
typedef struct shape {
    int heads, kv_heads, head_size, window;
    ft_dtype dtype, cache; /* of queries, keys and values; of the cache */
} shape;

/* What texts share. */
typedef struct sharing {
    bool cross_kv;
    int lanes; /* neighbouring texts, of one length and source; 0: none */
} sharing;

typedef struct world {
    shape s;
    sharing of;
    ft_attr attr;
    int texts, length[MOST_TEXTS];
    size_t first[MOST_TEXTS + 1]; /* row of each text's first token in the arrays below */
    int32_t *page[MOST_TEXTS];    /* [max_pages] of each */
    size_t pages, max_pages;      /* of the cache, of a text */
    void *q, *k, *v;              /* host, all rows */
    float *frequency;             /* host, [head_size / 2] */
    int32_t *cache_indirection;   /* host, [texts, max_pages * FT_PAGE_TOKENS] */
    void *cache[4];               /* device: keys, values, their scales */
    size_t bytes[4];              /* of each */
    void *turned, *result;        /* host: what STORE and ATTEND wrote, all rows */
} world;

/* Some tokens of a text. */
typedef struct piece {
    int text, from, count;
} piece;

extern rng numbers;
extern ft_cuda_device_props props;

/* The device, or all tests are skipped. */
void open_device(void);

/* Texts of these lengths, up to 0 or `count`. */
void world_init(world *w, const shape *s, const int *length, int count);
void world_init_shared(world *w, const shape *s, sharing of, const int *length, int count);
void world_fini(world *w);

/* Forget everything in the cache and all results. */
void world_forget(world *w);

/*
 * Store and attend to these pieces in one run.  `padding` rows, sequences and blocks more are there
 * as in a bucket.  Returns the status of the launches.
 */
int world_run(world *w, const piece *pieces, int count, bool step, int padding);

/* One of both: texts are stored, or these pieces attend to what the cache holds now. */
int world_store(world *w, const piece *pieces, int count);
int world_attend(world *w, const piece *pieces, int count, bool step, int padding);

/* Both as one kernel: a step.  It leaves w->turned alone. */
int world_join(world *w, const piece *pieces, int count, int padding);

/* The test of memories and lanes. */
void test_whole_and_shared(void);

/* Elements of a row of queries, or of keys and values. */
size_t world_cols(const world *w);
size_t world_kv_cols(const world *w);

double real_of(const void *data, ft_dtype dtype, size_t at);

/* What the cache holds, on the host. */
typedef struct copy {
    void *part[4];
} copy;

copy download_cache(const world *w);
void free_copy(copy *c);

/* Elements of one token's heads that are not what they should be: queries, keys and values. */
size_t wrong_in_token(const world *w, const copy *c, int text, int position);

/* All texts have been stored, and nothing else has. */
void check_store(const world *w, const char *name);

/* The results of some of the last `back` tokens of each text, 0: of all, are near enough. */
void check_values(const world *w, const char *what, int back);

#endif
