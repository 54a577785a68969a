/*
 * regex.h - the regular expressions of tokenizers, matched by PCRE2.
 *
 * The `tokenizers` library matches by Oniguruma.  The two agree on most of what patterns of
 * published models are made of; regex_pattern.c spells out for PCRE2 what they disagree on, and
 * refuses what it does not know to mean the same.
 *
 * Neither a pattern nor a text can hang: matching takes steps in proportion to the text at most,
 * and what would take more is given up.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_UNICODE_REGEX_H
#define FT_RUNTIME_TEXT_UNICODE_REGEX_H

#include "runtime/base/strbuf.h"

enum { FT_REGEX_MAX_PATTERN = 4096, FT_REGEX_WHY = 160 };

/* Read-only once compiled; all zero is none. */
typedef struct ft_regex {
    void *code;    /* pcre2_code */
    uint64_t step; /* what a step costs */
} ft_regex;

/*
 * Compile a pattern, or a text that is to be found as it stands.  Where that fails, `why` says
 * what would have been expected: "a pattern without \w, found at byte 3".
 */
ft_status ft_regex_compile(ft_regex *regex, const char *pattern, char why[FT_REGEX_WHY]);
ft_status ft_regex_literal(ft_regex *regex, const char *text, char why[FT_REGEX_WHY]);
void ft_regex_fini(ft_regex *regex);

/* What PCRE2 needs while it matches; one for each thread. */
typedef struct ft_regex_room {
    void *match, *context; /* pcre2_match_data, pcre2_match_context */
    void *stack;           /* pcre2_jit_stack; NULL while its own is enough */
    uint64_t steps;        /* that matching may still take */
    uint64_t step;         /* what one costs */
    size_t at;             /* where the last one was */
} ft_regex_room;

/*
 * Memory and steps for the matches in texts of `bytes` bytes in all; it must not move.  FT_ENOMEM
 * without text.
 */
ft_status ft_regex_room_init(ft_regex_room *room, size_t bytes);
void ft_regex_room_fini(ft_regex_room *room);

/* A walk over the matches in a text: start with { .regex, .text, .bytes }. */
typedef struct ft_regex_search {
    const ft_regex *regex;
    const char *text; /* valid UTF-8 */
    size_t bytes;
    size_t at;   /* where the search goes on */
    size_t last; /* end of the last match */
    bool any;    /* there was one */
} ft_regex_search;

/*
 * The next match at [*start, *end); *found says whether there is one.  A match may be empty, but
 * not where the last one ended.  FT_ELIMIT when the steps are used up, FT_ENOMEM; without text.
 */
ft_status ft_regex_next(ft_regex_search *search, ft_regex_room *room, bool *found, size_t *start,
                        size_t *end);

/* ---- regex_pattern.c ---------------------------------------------------------------------- */

/* Append what PCRE2 must read to understand a pattern as Oniguruma does. */
ft_status ft_regex_translate(const char *pattern, ft_text *out, char why[FT_REGEX_WHY]);

#endif
