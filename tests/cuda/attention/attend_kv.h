/*
 * attend_kv.h - shared by attend_kv.t and store_attend.t: texts whose tokens are stored and
 * attended to in batches of any kind.
 *
 * A world has a few texts with queries, keys and values for each token, and a KV cache on the
 * device whose pages they share in random order.  Unwritten entries are NaN.  The cache may hold
 * cross-attention KV, to all of which every query attends; or consecutive texts are beams, whose
 * tokens are in the pages of random beams of the same search.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_CUDA_ATTENTION_ATTEND_KV_H
#define FT_TESTS_CUDA_ATTENTION_ATTEND_KV_H

#include "kernels/kv_cache.h"
#include "tests/lib/ops/gpu.h"
#include "tests/lib/random.h"

enum { MAX_TEXTS = 72 };

/* The attributes of an operation. */
typedef struct shape {
    int heads, kv_heads, head_size, window;
    ft_dtype dtype, cache; /* of queries, keys and values; of the cache */
} shape;

/* How texts share the cache. */
typedef struct sharing {
    bool cross_kv;
    int beam_width; /* consecutive texts with one length and source; 0: no beams */
} sharing;

typedef struct world {
    shape s;
    sharing of;
    ft_attr attr;
    int texts, length[MAX_TEXTS];
    size_t first[MAX_TEXTS + 1];  /* row of each text's first token in the arrays below */
    int32_t *page[MAX_TEXTS];     /* [max_pages] of each */
    size_t pages, max_pages;      /* of the cache, of a text */
    void *q, *k, *v;              /* host, all rows */
    float *frequency;             /* host, [head_size / 2] */
    int32_t *cache_indirection;   /* host, [texts, max_pages * FT_PAGE_TOKENS] */
    void *cache[4];               /* device: keys, values, their scales */
    size_t bytes[4];              /* of each */
    void *turned, *result;        /* host: the results of STORE_KV and ATTEND_KV, all rows */
    bool never_copies;            /* prompts read an int8 cache in place */
} world;

/* Some tokens of a text. */
typedef struct piece {
    int text, from, count;
} piece;

extern rng numbers;
extern ft_cuda_device_props props;

/* Opens the device; skips all tests where there is none. */
void open_device(void);

/* Makes texts of these lengths, up to a 0 or `count`. */
void world_init(world *w, const shape *s, const int *length, int count);
void world_init_shared(world *w, const shape *s, sharing of, const int *length, int count);
void world_fini(world *w);

/* Fills the cache and all results with poison. */
void world_forget(world *w);

/*
 * Stores and attends to these pieces in one batch, padded with `padding` rows, sequences and blocks
 * as a batch of a captured graph is.  Returns the status of the launches.
 */
int world_run(world *w, const piece *pieces, int count, bool step, int padding);

/* One of the two: stores the pieces, or attends to the current contents of the cache. */
int world_store(world *w, const piece *pieces, int count);
int world_attend(world *w, const piece *pieces, int count, bool step, int padding);

/* Both as one kernel, in a decode step.  It does not write w->turned. */
int world_join(world *w, const piece *pieces, int count, int padding);

/* Tests cross-attention and beams. */
void test_whole_and_shared(void);

/* The columns of queries, and of keys and values. */
size_t world_cols(const world *w);
size_t world_kv_cols(const world *w);

double real_of(const void *data, ft_dtype dtype, size_t at);

/* A host copy of the cache. */
typedef struct copy {
    void *part[4];
} copy;

copy download_cache(const world *w);
void free_copy(copy *c);

/* The number of wrong elements in one token's queries, keys and values. */
size_t wrong_in_token(const world *w, const copy *c, int text, int position);

/* Checks that all texts have been stored, and nothing else. */
void check_store(const world *w, const char *name);

/* Checks the results of some of the last `back` tokens of each text (0: of all). */
void check_values(const world *w, const char *what, int back);

#endif
