/*
 * vocabulary_json.h - the two large tables of a tokenizer.json, read without a tree.
 *
 * "model.vocab" and "model.merges" are nearly all of the file: 128,000 words and 280,000 pairs in
 * Llama 3.  As a tree of JSON values they would take most of a second.  So they are found by a
 * glance over the text, cut out, and read token by token; the rest is small.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_VOCABULARY_JSON_H
#define FT_RUNTIME_TEXT_VOCABULARY_JSON_H

#include "runtime/text/models/bpe.h"

/* A value's place in the text; both 0 where there is none. */
typedef struct ft_json_span {
    size_t start, end;
} ft_json_span;

typedef struct ft_json_tables {
    const char *file; /* its name, for messages */
    const char *json; /* the whole text */
    size_t bytes;
    ft_json_span vocab, merges;
} ft_json_tables;

/*
 * Find the tables in the text.  It need not be valid JSON: what is between the tables' brackets is
 * checked when they are read, and the rest by who reads that.
 */
void ft_json_find_tables(ft_json_tables *tables);

/* Append the text with {} and [] in place of the tables; false when there is no memory. */
FT_MUST_USE bool ft_json_without_tables(const ft_json_tables *tables, ft_text *rest);

/* Line and column, from 1, of the place in the whole text that is byte `at` of the rest. */
void ft_json_place(const ft_json_tables *tables, size_t at, int *line, int *column);

/* Read the tables into an empty vocabulary, and into a BPE whose flags are set. */
FT_MUST_USE ft_status ft_json_read_vocabulary(const ft_json_tables *tables,
                                              ft_vocabulary *vocabulary, ft_error *err);
FT_MUST_USE ft_status ft_json_read_merges(const ft_json_tables *tables,
                                          const ft_vocabulary *vocabulary, ft_bpe *bpe,
                                          ft_error *err);

#endif
