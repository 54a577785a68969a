/*
 * run.h - declarations shared by the parts of ft-run: the command line and the modes of operation.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_RUN_RUN_H
#define FT_RUNTIME_TOOLS_RUN_RUN_H

#include "runtime/model/model.h"
#include "runtime/text/translator.h"
#include "runtime/base/atomic_file.h"
#include "runtime/cli/image_options.h"
#include "runtime/cli/options.h"
#include "runtime/cli/progress.h"
#include "runtime/data/texts/examples.h"
#include "runtime/tools/run/tasks/task.h"

/* The command line. */
typedef struct ft_run {
    const char *input, *data, *text, *output, *outputs;
    const char **keep; /* NULL-terminated; capacity argc */
    size_t num_keep;
    char *const *operand;
    size_t num_operands;
    ft_image_paths images;
    bool force, json, truncate, verbose;
    bool jsonl;                /* one JSON object a line */
    ft_examples_options texts; /* how --text is read */
    int64_t max_length;        /* of texts in tokens; 0: not given */
    bool embed;                /* embed texts with any decoder */
    const char *prompt_name;   /* of the prompt before each text; NULL: the default one */
    size_t dim;                /* values of an embedding to keep; 0: all */
    ft_task_options task;
    ft_model_options model;
    ft_session_options session;

    /* Decoders. */
    const char
        *single_run_option; /* name of a given option for single forward passes; NULL: none */
    const char *generation_option; /* ... for text generation */
    const char *cache_option;      /* ... for the KV cache */
    ft_request sampling;           /* sampling of all requests; prompt and stop ids are not set */
    const char **stop;             /* NULL-terminated; capacity argc */
    size_t num_stop;
    int32_t *stop_id; /* [nstop_id] */
    size_t num_run_stop_ids;
    int64_t chunk, batch; /* 0: not given */
    const char *system;
    int64_t date; /* of the chat template; 0: now */
    bool ignore_end, chat, logprobs;

    /* Encoder-decoders. */
    ft_beam_search_options search; /* beams 0: no beam search */
    const char *search_option;     /* name of a given beam search option; NULL: none */
    int32_t forced_bos;
    bool has_forced_bos;        /* --forced-bos was given */
    ft_language_pair languages; /* of a translation */
} ft_run;

extern const ft_tool ft_run_tool;

/* Fill it in, or end the program.  Free with ft_run_free(). */
void ft_run_parse(ft_run *run, int argc, char **argv);
void ft_run_free(ft_run *run);

/* Read the texts named on the command line. */
FT_MUST_USE ft_status ft_run_texts(ft_examples *out, const ft_run *run, ft_error *err);

/* One forward pass per batch, then print the outputs.  `output` may be NULL. */
FT_MUST_USE ft_status ft_run_forward(const ft_run *run, const ft_model *model,
                                     ft_atomic_file *output, ft_error *err);

/* Text generation. */
FT_MUST_USE ft_status ft_run_generate(const ft_run *run, const ft_model *model,
                                      ft_atomic_file *output, ft_error *err);

/* Beam search. */
FT_MUST_USE ft_status ft_run_beam_search(const ft_run *run, const ft_model *model,
                                         ft_atomic_file *output, ft_error *err);

/*
 * Start the progress line of -d, in units such as "sequences".  `tells`: results are printed at the
 * same time, so no progress is shown if both go to one terminal.
 */
void ft_run_begin_progress(ft_progress_line *line, const ft_run *run, const char *unit,
                           bool prints_results);

/* With --verbose, print the plan and the selected int8 GEMM kernels. */
FT_MUST_USE ft_status ft_run_explain(const ft_run *run, ft_session *session, ft_error *err);

#endif
