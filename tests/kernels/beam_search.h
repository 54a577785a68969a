/*
 * beam_search.h - what the tests of beam search share: models that are tables, searches on them
 * step by step, and a slow, plain search by the same rules.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_KERNELS_BEAM_SEARCH_H
#define FT_TESTS_KERNELS_BEAM_SEARCH_H

#include "kernels/beam_search.h"
#include "tests/lib/random.h"

enum { TEXT = 320 }; /* tokens of a text at most: what a seat has room for */

/* Logits from the last token and its position: all that a model is to a search. */
typedef struct table {
    uint32_t seed;
    float bonus; /* of ids that end a text */
} table;

/* A search: the model, the rules that hold in each step, and where it begins. */
typedef struct problem {
    table model;
    ft_beam_params rules; /* known and what depends on it are set by the search */
    double length_penalty;
    int32_t vocabulary, first; /* `first` is forced in the first step; -1: none is */
    int32_t prompt[TEXT];
} problem;

/* The same numbers as in golden/make-beams.py. */
void table_logits(const problem *p, int32_t position, int32_t last, float *out);

/* The rules of a step. */
ft_beam_params rules_of(const problem *p, int32_t known);

typedef struct found {
    double score;
    int32_t length;
    int32_t token[TEXT];
} found;

/* Finished texts, the best first; how many. */
int32_t search_plainly(const problem *p, found out[FT_MAX_BEAMS]);

/* ---- By steps ------------------------------------------------------------------------------ */

/* Memory of `seats`, filled with nonsense. */
ft_beam_state memory_new(rng *r, size_t num_slots, size_t vocabulary);
ft_beam_state memory_copy(const ft_beam_state *from, size_t num_slots);
void memory_free(ft_beam_state *memory);

/* Whether they are the same; of ft_beam, too, all bits. */
bool memory_equals(const ft_beam_state *a, const ft_beam_state *b, size_t num_slots);

/* Whether the search of a group is over, all parts of it. */
bool search_is_over(const ft_beam_state *memory, const ft_beam_params *rules);

/* Put the prompt where NOTE would. */
void note_prompt(const ft_beam_state *memory, const problem *p);

/* The logits of the rows of a step, one after the other; how many rows. */
int32_t step_logits(const ft_beam_state *memory, const problem *p, const ft_beam_params *rules,
                    float *out);

/* A step of one group on the CPU; its rows begin at `logits`. */
void step_on_cpu(const ft_beam_state *memory, const ft_beam_params *rules, const float *logits);

/* What a search has found, the best first, from its memory; -1: it failed. */
int32_t collect_found(const ft_beam_state *memory, const ft_beam_params *rules,
                      found out[FT_MAX_BEAMS]);

/* All of it on the CPU. */
int32_t search_on_cpu(const problem *p, found out[FT_MAX_BEAMS]);

bool same_tokens(const found *a, const found *b);

#endif
