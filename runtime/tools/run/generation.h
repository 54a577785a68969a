/*
 * generation.h - text generation in ft-run: requests, results and their output.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_RUN_GENERATION_H
#define FT_RUNTIME_TOOLS_RUN_GENERATION_H

#include "runtime/cli/json_stream.h"
#include "runtime/text/translator.h"
#include "runtime/tools/run/prompts.h"

/* The generated tokens and text of one request. */
typedef struct ft_generated_text {
    int32_t *id; /* [tokens], including the stop token; owned */
    float *logprob;
    size_t tokens, max_tokens; /* number of tokens, and capacity */
    ft_finish_reason reason;
    char *text; /* not NUL-terminated; owned */
    size_t bytes, capacity;
} ft_generated_text;

typedef struct ft_generation {
    const ft_run *run;
    const ft_model *model;
    ft_translator translator;
    ft_tokenizer *tokenizer; /* of the new tokens, in the translator; NULL: only ids are written */
    ft_prompts prompts;
    ft_request *request; /* [prompts.count] */
    int32_t *stop_id;    /* of the model and the command line */
    size_t stops;
    int32_t begin[2]; /* encoder-decoders: the decoder prefix; the prompts are the sources */
    size_t num_start_ids;
    ft_session_options sizes;
    size_t context;
    ft_generated_text
        *generated;      /* [prompts.count]; freed once reported, unless written to a file */
    size_t num_reported; /* number of texts reported so far; for a single text, bytes */
    size_t tokens, num_finished; /* new tokens of all texts; finished texts */
    ft_progress_line line;
    bool writes_file, reports; /* to a file; to standard output, as text or JSON */
    bool keep_logprobs;        /* they will be written */
    ft_json_stream json;       /* open after the first result */
    ft_generate_stats stats;
    bool no_memory;
} ft_generation;

/* The request common to all prompts: sampling and stop criteria.  The caller frees *stop_id. */
FT_MUST_USE ft_status ft_run_request(ft_request *sampling, int32_t **stop_id, const ft_run *run,
                                     const ft_model *model, ft_error *err);

/*
 * Open the model's tokenizers.  They are required for text input, languages or stop strings;
 * otherwise *out may have none, and ids are printed.
 */
FT_MUST_USE ft_status ft_run_tokenizers(ft_translator *out, const ft_run *run,
                                        const ft_model *model, ft_error *err);

/* The first new token of an encoder-decoder: of --forced-bos, the target language or the model. */
int32_t ft_run_forced_bos(const ft_run *run, const ft_model *model,
                          const ft_translator *translator);

/* Print a piece of text; on a terminal, control characters are replaced by '?'. */
void ft_print_piece(const char *text, size_t bytes);

/* "N sequences, ...; prefill X tokens/s, decode Y tokens/s" */
void ft_print_speed(FILE *file, size_t sequences, size_t made, const ft_generate_stats *stats);

/*
 * Warn if --max-new-tokens exceeds the context that is left after the longest prompt.
 */
void ft_warn_short_context(const ft_run *run, size_t longest, size_t context);

/* Print the finished texts in order, up to the first unfinished one. */
void ft_generation_report(ft_generation *g);

/* Print the throughput, after all texts. */
void ft_generation_report_summary(ft_generation *g);

/* Write output_ids, lengths, and with --logprobs also logprobs. */
FT_MUST_USE ft_status ft_generation_write(const ft_generation *g, ft_atomic_file *output,
                                          ft_error *err);

/* Interactive chat: one message per line of standard input. */
FT_MUST_USE ft_status ft_run_chat(const ft_run *run, const ft_model *model,
                                  const ft_tokenizer *tokenizer, ft_error *err);

#endif
