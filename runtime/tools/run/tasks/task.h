/*
 * task.h - print what the logits of a head mean for texts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_RUN_TASKS_TASK_H
#define FT_RUNTIME_TOOLS_RUN_TASKS_TASK_H

#include "runtime/cli/json_stream.h"
#include "runtime/data/encoded_examples.h"
#include "runtime/graph/model_config.h"
#include "runtime/scores/tasks/best_answer.h"

/* How results are printed. */
typedef struct ft_task_options {
    bool by_word; /* entities: the first token of a word decides */
    int32_t top;  /* words for each mask */
} ft_task_options;

/* The texts of a run, and the rows of its last batch. */
typedef struct ft_task_rows {
    const ft_model *model;
    const ft_tokenizer *tokenizer;
    const ft_examples *examples;
    const ft_encoded_examples *encoded;
    ft_task_options options;
    ft_answer answer; /* of the question whose windows are being read */
} ft_task_rows;

/*
 * Print row `row` of the encoded examples. logits[0] and, for answers, logits[1] are its rows in
 * the outputs of the task. With `json` the members of an object are written instead. Returns
 * whether the example is finished: only then something is printed.
 */
typedef bool (*ft_task_fn)(ft_task_rows *rows, size_t row, const float *const logits[2],
                           ft_json_stream *json);

typedef struct ft_task {
    ft_head head;
    const char *output[3]; /* names of the outputs that it reads, NULL-terminated */
    bool windows;          /* long contexts are split */
    ft_task_fn report;
} ft_task;

/* The task of a head; NULL: results are printed elsewhere. */
const ft_task *ft_task_of(ft_head head);

bool ft_report_entities(ft_task_rows *rows, size_t row, const float *const logits[2],
                        ft_json_stream *json);
bool ft_report_answer(ft_task_rows *rows, size_t row, const float *const logits[2],
                      ft_json_stream *json);
bool ft_report_masks(ft_task_rows *rows, size_t row, const float *const logits[2],
                     ft_json_stream *json);

#endif
