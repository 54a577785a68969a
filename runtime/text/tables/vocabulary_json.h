/*
 * vocabulary_json.h - read the two large tables of a tokenizer.json without building a JSON tree.
 *
 * "model.vocab" and "model.merges" are nearly the whole file: 128,000 words and 280,000 pairs in
 * Llama 3. As a tree of JSON values they would take most of a second. So a fast scan locates them,
 * they are cut out, and read token by token; the remaining text is small.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_TABLES_VOCABULARY_JSON_H
#define FT_RUNTIME_TEXT_TABLES_VOCABULARY_JSON_H

#include "runtime/text/models/bpe.h"
#include "runtime/text/models/unigram.h"

/* A value's range in the text; both 0 when it is absent. */
typedef struct ft_json_span {
    size_t start, end;
} ft_json_span;

typedef struct ft_tokenizer_tables {
    const char *file; /* file name, for messages */
    const char *json; /* the whole text */
    size_t bytes;
    ft_json_span vocab, merges;
} ft_tokenizer_tables;

/*
 * Locate the tables in the text. The text may be invalid JSON: the contents of the tables are
 * checked when they are read, and the rest by the reader of the rest.
 */
void ft_tokenizer_tables_find(ft_tokenizer_tables *tables);

/* Append the text with {} and [] in place of the tables; false when out of memory. */
FT_MUST_USE bool ft_tokenizer_tables_strip(const ft_tokenizer_tables *tables, ft_strbuf *rest);

/* Line and column, from 1, in the whole text of byte `at` of the text without tables. */
void ft_tokenizer_tables_line_column(const ft_tokenizer_tables *tables, size_t at, int *line,
                                     int *column);

/*
 * Read the tables into an empty vocabulary, the trie of a Unigram model, and a BPE model whose
 * flags are set.
 */
FT_MUST_USE ft_status ft_json_read_vocabulary(const ft_tokenizer_tables *tables,
                                              ft_vocabulary *vocabulary, ft_error *err);
FT_MUST_USE ft_status ft_json_read_scores(const ft_tokenizer_tables *tables,
                                          ft_vocabulary *vocabulary, ft_unigram *unigram,
                                          ft_error *err);
FT_MUST_USE ft_status ft_json_read_merges(const ft_tokenizer_tables *tables,
                                          const ft_vocabulary *vocabulary, ft_bpe *bpe,
                                          ft_error *err);

#endif
