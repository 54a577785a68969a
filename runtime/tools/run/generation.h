/*
 * generation.h - texts that ft-run continues: how, and what has become of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_RUN_GENERATION_H
#define FT_RUNTIME_TOOLS_RUN_GENERATION_H

#include "runtime/cli/json_stream.h"
#include "runtime/tools/run/prompts.h"

/* What one text has grown by. */
typedef struct ft_growth {
    int32_t *id; /* [tokens], with the one that ends it; owned */
    float *logprob;
    size_t tokens, most; /* most: that there is room for */
    ft_reason reason;
    char *text; /* not terminated; owned */
    size_t bytes, room;
} ft_growth;

typedef struct ft_generation {
    const ft_run *run;
    const ft_model *model;
    ft_tokenizer *tokenizer; /* NULL: nobody asks for text */
    ft_prompts prompts;
    ft_request *request; /* [prompts.count] */
    int32_t *stop_id;    /* the model's and those of the command line */
    size_t stops;
    int32_t begin[2]; /* what an encoder-decoder's texts begin with: prompts are its sources */
    size_t begins;
    size_t context;
    ft_growth *grown;    /* [prompts.count]; what has been told and is not written is empty */
    size_t told;         /* texts that have been told, from the first on; of a single text bytes */
    size_t tokens, ended; /* new ones, of all texts; texts that are complete */
    ft_progress_line line;
    bool writes, tells;  /* to a file; each text, as it is or as JSON */
    bool keeps_logprobs; /* because somebody will see them */
    ft_json_stream json; /* open once there is something to tell */
    ft_generate_stats stats;
    bool no_memory;
} ft_generation;

/* All requests alike: how tokens are chosen, and where texts end.  The caller frees *stop_id. */
FT_MUST_USE ft_status ft_run_how(ft_request *how, int32_t **stop_id, const ft_run *run,
                                 const ft_model *model, ft_error *err);

/*
 * The model's tokenizer where texts come in or go out, and else where there is one: ids are told
 * where there is none, which is NULL.
 */
FT_MUST_USE ft_status ft_run_tokenizer(ft_tokenizer **out, const ft_run *run, const ft_model *model,
                                       ft_error *err);

/* Print a part of a text; on a terminal without the control characters that it would obey. */
void ft_print_piece(const char *text, size_t bytes);

/* "N sequences, ...; prefill X tokens/s, decode Y tokens/s" */
void ft_print_speed(FILE *file, size_t sequences, size_t made, const ft_generate_stats *stats);

/*
 * Where --max-new-tokens is more than a context leaves behind the longest prompt of all, say so.
 */
void ft_warn_of_context(const ft_run *run, size_t longest, size_t context);

/* Tell the texts that are complete and have none before them that is not. */
void ft_generation_tell(ft_generation *g);

/* How fast it went, behind all texts. */
void ft_generation_tell_end(ft_generation *g);

/* output_ids, lengths, and with --logprobs those. */
FT_MUST_USE ft_status ft_generation_write(const ft_generation *g, ft_output *output, ft_error *err);

/* Talk: messages come from standard input, a line each. */
FT_MUST_USE ft_status ft_run_chat(const ft_run *run, const ft_model *model,
                                  const ft_tokenizer *tokenizer, ft_error *err);

#endif
