/*
 * examples.h - the texts of a file or of the command line, each with its pair and its labels.
 *
 * A line is one text; with `pairs`, two texts parted by a tab. A file whose name ends in ".jsonl",
 * or any file with `fields`, has one JSON object a line instead: JSON Lines.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_DATA_TEXTS_EXAMPLES_H
#define FT_RUNTIME_DATA_TEXTS_EXAMPLES_H

#include "runtime/ft.h"

#include <jansson.h>

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

enum { FT_EXAMPLES_MAX_BYTES = 128 << 20 /* in memory, with an overhead per example */ };

typedef struct ft_example {
    char *text;   /* valid UTF-8, as all strings here */
    char *pair;   /* the second text of a pair; NULL: a single text */
    json_t *json; /* the object of JSON Lines, with labels; NULL: a line of text */
} ft_example;

typedef struct ft_examples {
    char *name; /* of the file, for messages: "FILE" or "text" */
    ft_example *example;
    size_t count, capacity;
    size_t bytes; /* with overhead */
} ft_examples;

typedef struct ft_examples_options {
    bool whole_file;    /* the file is one text */
    bool pairs;         /* lines hold two texts parted by a tab */
    const char *fields; /* JSON Lines: "text" or "question,context"; NULL: the names below */
    bool targets; /* pairs are a text and what a model should make of it: of the names below, source
                     and target or prompt and completion come first */
} ft_examples_options;

/*
 * Read all examples of a file; "-" is standard input. JSON Lines without `fields`: the first of
 * these names that the first object has: question and context, premise and hypothesis, sentence1
 * and sentence2, query and passage, text and text_pair; or text, sentence, source, prompt.
 *
 * FT_ELIMIT: more than FT_EXAMPLES_MAX_BYTES; FT_EFORMAT: no example, no pair, invalid JSON or a
 * missing field. The error names file and line. Free with ft_examples_fini(), also after failure.
 */
FT_MUST_USE ft_status ft_examples_read(ft_examples *out, const char *path,
                                       const ft_examples_options *options, ft_error *err);

/* The same from lines on the command line. */
FT_MUST_USE ft_status ft_examples_copy(ft_examples *out, char *const *line, size_t count,
                                       bool pairs, ft_error *err);

void ft_examples_fini(ft_examples *examples);

/* Fail with "FILE: line N: " and a text. */
ft_status ft_examples_fail(const ft_examples *examples, size_t index, ft_error *err,
                           const char *format, ...) __attribute__((format(printf, 4, 5), cold));

#pragma GCC visibility pop

#endif
