/*
 * regex.h - regular expressions of tokenizers, matched by PCRE2.
 *
 * The `tokenizers` library uses Oniguruma. The two agree on most constructs in patterns of
 * published models; regex_pattern.c translates the differences, and rejects constructs that may
 * differ.
 *
 * Neither a pattern nor a text can cause a hang: the number of matching steps is bounded in
 * proportion to the text, and matching fails beyond it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_UNICODE_REGEX_H
#define FT_RUNTIME_TEXT_UNICODE_REGEX_H

#include "runtime/base/strbuf.h"

enum { FT_REGEX_MAX_PATTERN = 4096, FT_REGEX_ERROR_SIZE = 160 };

/* Immutable once compiled; zero-initialized means none. */
typedef struct ft_regex {
    void *code;         /* pcre2_code */
    uint64_t step_cost; /* cost of a step */
} ft_regex;

/*
 * Compile a pattern, or a literal text. On failure, `why` says what was expected: "a pattern
 * without \w, found at byte 3".
 */
ft_status ft_regex_compile(ft_regex *regex, const char *pattern, char why[FT_REGEX_ERROR_SIZE]);
ft_status ft_regex_literal(ft_regex *regex, const char *text, char why[FT_REGEX_ERROR_SIZE]);
void ft_regex_fini(ft_regex *regex);

/* The state of PCRE2 while matching; one per thread. */
typedef struct ft_regex_workspace {
    void *match, *context; /* pcre2_match_data, pcre2_match_context */
    void *stack;           /* NULL while the default is sufficient */
    uint64_t steps_left;   /* remaining budget */
    uint64_t step_cost;    /* cost of a step */
    size_t at;             /* position of the last step */
} ft_regex_workspace;

/*
 * Allocate memory and the budget of steps for `patterns` patterns in texts of `bytes` bytes in
 * total; the workspace must not move. FT_ENOMEM without text.
 */
ft_status ft_regex_workspace_init(ft_regex_workspace *workspace, size_t bytes, size_t patterns);
void ft_regex_workspace_fini(ft_regex_workspace *workspace);

/* An iteration over the matches in a text: initialize with { .regex, .text, .bytes }. */
typedef struct ft_regex_search {
    const ft_regex *regex;
    const char *text; /* valid UTF-8 */
    size_t bytes;
    size_t at;   /* where the search continues */
    size_t last; /* end of the last match */
    bool any;    /* there was a match */
} ft_regex_search;

/*
 * The next match at [*start, *end); *found tells whether there is one. A match may be empty, but
 * not at the end of the previous one. FT_ELIMIT when the budget is exceeded, FT_ENOMEM; without
 * text.
 */
ft_status ft_regex_next(ft_regex_search *search, ft_regex_workspace *workspace, bool *found,
                        size_t *start, size_t *end);

/* ---- regex_pattern.c ---------------------------------------------------------------------- */

/* Translate an Oniguruma pattern to PCRE2 syntax and append it to *out. */
ft_status ft_regex_translate(const char *pattern, ft_strbuf *out, char why[FT_REGEX_ERROR_SIZE]);

#endif
