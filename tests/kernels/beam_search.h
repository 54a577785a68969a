/*
 * beam_search.h - shared by the tests of beam search: models that are tables, searches on them step
 * by step, and a simple reference search with the same options.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_KERNELS_BEAM_SEARCH_H
#define FT_TESTS_KERNELS_BEAM_SEARCH_H

#include "kernels/beam_search.h"
#include "tests/lib/random.h"

enum { TEXT = 320 }; /* the context length: the capacity of a slot */

/* A model whose logits depend on the last token and its position. */
typedef struct table {
    uint32_t seed;
    float bonus; /* added to the logits of end tokens */
} table;

/* A search: the model, the options of each step, and the prompt. */
typedef struct problem {
    table model;
    ft_beam_params rules; /* the search sets n_tokens and the fields that depend on it */
    double length_penalty;
    int32_t vocabulary, first; /* `first` is forced in the first step; -1: none is */
    int32_t prompt[TEXT];
} problem;

/* The same numbers as in golden/make-beams.py. */
void table_logits(const problem *p, int32_t position, int32_t last, float *out);

/* The options of a step. */
ft_beam_params rules_of(const problem *p, int32_t known);

typedef struct found {
    double score;
    int32_t length;
    int32_t token[TEXT];
} found;

/* Finds the finished hypotheses, the best first; returns their number. */
int32_t search_plainly(const problem *p, found out[FT_MAX_BEAMS]);

/* ---- Step by step -------------------------------------------------------------------------- */

/* The state of `num_slots` slots, filled with random values. */
ft_beam_state memory_new(rng *r, size_t num_slots, size_t vocabulary);
ft_beam_state memory_copy(const ft_beam_state *from, size_t num_slots);
void memory_free(ft_beam_state *memory);

/* Whether two states have the same bits. */
bool memory_equals(const ft_beam_state *a, const ft_beam_state *b, size_t num_slots);

/* Whether the search has ended, in all its beam groups. */
bool search_is_over(const ft_beam_state *memory, const ft_beam_params *rules);

/* Records the prompt as RECORD_TOKENS would. */
void record_prompt(const ft_beam_state *memory, const problem *p);

/* Computes the logits of the rows of a step; returns the number of rows. */
int32_t step_logits(const ft_beam_state *memory, const problem *p, const ft_beam_params *rules,
                    float *out);

/* A step of one search on the CPU; its rows begin at `logits`. */
void step_on_cpu(const ft_beam_state *memory, const ft_beam_params *rules, const float *logits);

/* Reads the hypotheses of a search from its state, the best first; -1: the search failed. */
int32_t collect_found(const ft_beam_state *memory, const ft_beam_params *rules,
                      found out[FT_MAX_BEAMS]);

/* A whole search on the CPU. */
int32_t search_on_cpu(const problem *p, found out[FT_MAX_BEAMS]);

bool same_tokens(const found *a, const found *b);

#endif
