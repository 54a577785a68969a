/*
 * run.h - what the parts of ft-run share: the command line, and the two things to do with a model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_RUN_RUN_H
#define FT_RUNTIME_TOOLS_RUN_RUN_H

#include "runtime/model/model.h"
#include "runtime/base/atomic_file.h"
#include "runtime/cli/options.h"
#include "runtime/cli/progress.h"
#include "runtime/tools/run/text_lines.h"

/* The command line. */
typedef struct ft_run {
    const char *input, *data, *text, *output, *outputs;
    const char **keep; /* NULL-terminated; room for as many as there are arguments */
    size_t nkeep;
    char *const *operand;
    size_t noperand;
    const char **image; /* [nimage]: of --image, and then the operands */
    size_t nimage;
    bool force, json, truncate, whole, verbose;
    ft_model_options model;
    ft_session_options session;

    /* Decoders. */
    const char *running;    /* an option that is for a single run; NULL: none given */
    const char *generating; /* one that is for texts to be continued */
    const char *caching;    /* one for what a decoder remembers */
    ft_request how;         /* of every text; its prompt and its stops are not set */
    const char **stop;      /* NULL-terminated, like `keep` */
    size_t nstop;
    int32_t *stop_id; /* [nstop_id] */
    size_t nstop_id;
    int64_t chunk, batch; /* 0: not given */
    const char *system;
    bool ignore_end, chat, logprobs;

    /* Encoder-decoders. */
    ft_search_options search; /* beams 0: there is none */
    const char *searching;    /* an option that is for a search; NULL: none given */
    int32_t forced_bos;
    bool forces_bos; /* it was given */
} ft_run;

extern const ft_tool ft_run_tool;

/* Fill it in, or end the program.  Free with ft_run_free(). */
void ft_run_parse(ft_run *run, int argc, char **argv);
void ft_run_free(ft_run *run);

/* The texts that it names. */
FT_MUST_USE ft_status ft_run_texts(ft_texts *out, const ft_run *run, ft_error *err);

/* Run sequences once, and tell the outputs.  `output` may be NULL. */
FT_MUST_USE ft_status ft_run_forward(const ft_run *run, const ft_model *model, ft_output *output,
                                     ft_error *err);

/* Continue texts. */
FT_MUST_USE ft_status ft_run_generate(const ft_run *run, const ft_model *model, ft_output *output,
                                      ft_error *err);

/* Translate by beam search. */
FT_MUST_USE ft_status ft_run_search(const ft_run *run, const ft_model *model, ft_output *output,
                                    ft_error *err);

/*
 * Begin to show how far a run of -d is, in units such as "sequences"; `tells`: results are printed
 * meanwhile, which on one terminal would mix.
 */
void ft_run_begin_progress(ft_progress_line *line, const ft_run *run, const char *unit, bool tells);

/* With --verbose, print what the session runs and how. */
FT_MUST_USE ft_status ft_run_explain(const ft_run *run, ft_session *session, ft_error *err);

#endif
