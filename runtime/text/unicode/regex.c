/*
 * regex.c - compile patterns, and match them within limits.
 *
 * PCRE2 makes a callout before each item of a pattern, and between two callouts it only tries one
 * item, or runs over characters whose number the next callout shows. So callouts and characters
 * count the steps of matching, wherever matches start and however often, and each text has a budget
 * of steps. An ordinary pattern takes 1 to 20 steps per byte, for texts of any size; a pattern with
 * catastrophic backtracking, or one that reads to the end from each byte, soon exceeds the budget.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/unicode/regex.h"

#include "runtime/error.h"
#include "runtime/base/utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STEPS_PER_TEXT = 1 << 22,
    STEPS_PER_BYTE = 32,
    ORDINARY_CODE_BYTES = 8 << 10, /* bytes; published patterns take at most 5000 */
    STACK_BYTES = 64 << 20,
    HEAP_KIB = 64 << 10,
    MAX_NESTING = 64,
};

/* ---- Compiling ---------------------------------------------------------------------------- */

/* The largest number after a brace: an item that fails may have run over as many characters. */
static unsigned long largest_repeat(const char *pattern, size_t bytes)
{
    unsigned long largest = 0;
    for (size_t i = 0; i < bytes; i++) {
        bool code = i > 0 && pattern[i - 1] == 'x'; /* \x{123} */
        unsigned long run = pattern[i] == '{' && !code ? strtoul(pattern + i + 1, NULL, 10) : 0;
        largest = run > largest ? run : largest;
    }
    return largest;
}

/* The cost of a step: long code may be a class of thousands of ranges. */
static uint64_t compute_step_cost(const void *code, const char *pattern, size_t bytes)
{
    size_t size = 0;
    pcre2_pattern_info(code, PCRE2_INFO_SIZE, &size);
    return (size <= ORDINARY_CODE_BYTES ? 1 : size / 256) + largest_repeat(pattern, bytes) / 16;
}

static ft_status compile(ft_regex *regex, const char *pattern, size_t bytes, uint32_t options,
                         char why[FT_REGEX_ERROR_SIZE])
{
    int code;
    PCRE2_SIZE offset;
    PCRE2_UCHAR text[100];
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (context == NULL)
        return FT_ENOMEM;
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(context, MAX_NESTING);
    regex->code = pcre2_compile((PCRE2_SPTR) pattern, bytes,
                                options | PCRE2_UTF | PCRE2_AUTO_CALLOUT, &code, &offset, context);
    pcre2_compile_context_free(context);
    if (regex->code != NULL) {
        regex->step_cost = compute_step_cost(regex->code, pattern, bytes);
        pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE); /* without JIT, matching is slow */
        return FT_OK;
    }
    pcre2_get_error_message(code, text, sizeof text);
    snprintf(why, FT_REGEX_ERROR_SIZE, "a valid pattern: %s", (const char *) text);
    return FT_EFORMAT;
}

static ft_status check_length(const char *pattern, char why[FT_REGEX_ERROR_SIZE])
{
    size_t bytes = strlen(pattern);
    if (bytes > 0 && bytes <= FT_REGEX_MAX_PATTERN)
        return FT_OK;
    snprintf(why, FT_REGEX_ERROR_SIZE, "a pattern of 1 to %d bytes, found %zu",
             FT_REGEX_MAX_PATTERN, bytes);
    return FT_EUNSUPPORTED;
}

ft_status ft_regex_compile(ft_regex *regex, const char *pattern, char why[FT_REGEX_ERROR_SIZE])
{
    ft_strbuf translated = { 0 };
    FT_TRY(check_length(pattern, why));
    ft_status rc = ft_regex_translate(pattern, &translated, why);
    /* In Oniguruma, ^ and $ match at lines. */
    if (rc == FT_OK)
        rc = compile(regex, translated.data, translated.bytes, PCRE2_UCP | PCRE2_MULTILINE, why);
    ft_strbuf_fini(&translated);
    return rc;
}

ft_status ft_regex_literal(ft_regex *regex, const char *text, char why[FT_REGEX_ERROR_SIZE])
{
    FT_TRY(check_length(text, why));
    return compile(regex, text, strlen(text), PCRE2_LITERAL, why);
}

void ft_regex_fini(ft_regex *regex)
{
    pcre2_code_free(regex->code);
    regex->code = NULL;
}

/* ---- Matching ----------------------------------------------------------------------------- */

/* Callout before each item of the pattern: charge for the steps since the previous one. */
static int on_callout(pcre2_callout_block *block, void *user)
{
    ft_regex_workspace *workspace = user;
    size_t at = block->current_position, n_chars = at > workspace->at ? at - workspace->at : 0;
    uint64_t cost = (1 + n_chars) * workspace->step_cost;
    workspace->at = at;
    if (workspace->steps_left < cost)
        return PCRE2_ERROR_CALLOUT;
    workspace->steps_left -= cost;
    return 0;
}

ft_status ft_regex_workspace_init(ft_regex_workspace *workspace, size_t bytes, size_t patterns)
{
    *workspace = (ft_regex_workspace){
        .match = pcre2_match_data_create(1, NULL),
        .context = pcre2_match_context_create(NULL),
        .steps_left = STEPS_PER_TEXT + (uint64_t) bytes * STEPS_PER_BYTE * patterns,
    };
    if (workspace->match == NULL || workspace->context == NULL)
        return FT_ENOMEM;
    pcre2_set_heap_limit(workspace->context, HEAP_KIB);
    pcre2_set_match_limit(workspace->context, UINT32_MAX);
    pcre2_set_callout(workspace->context, on_callout, workspace);
    return FT_OK;
}

void ft_regex_workspace_fini(ft_regex_workspace *workspace)
{
    pcre2_match_data_free(workspace->match);
    pcre2_match_context_free(workspace->context);
    pcre2_jit_stack_free(workspace->stack);
}

/* The first character boundary from `at` on, or the end of the text. */
static size_t next_char_boundary(const ft_regex_search *search, size_t at)
{
    while (at < search->bytes && ft_utf8_is_continuation(search->text[at]))
        at++;
    return at < search->bytes ? at : search->bytes;
}

/* Switch to a larger stack; false when it is already in use. */
static bool enlarge_stack(ft_regex_workspace *workspace)
{
    if (workspace->stack != NULL)
        return false;
    workspace->stack = pcre2_jit_stack_create(1 << 15, STACK_BYTES, NULL);
    pcre2_jit_stack_assign(workspace->context, NULL, workspace->stack);
    return workspace->stack != NULL;
}

/* Match from search->at on; returns PCRE2's result. */
static int match(const ft_regex_search *search, ft_regex_workspace *workspace)
{
    int rc;
    do {
        workspace->at = search->at;
        workspace->step_cost = search->regex->step_cost;
        rc = pcre2_match(search->regex->code, (PCRE2_SPTR) search->text, search->bytes, search->at,
                         PCRE2_NO_UTF_CHECK, workspace->match, workspace->context);
    } while (rc == PCRE2_ERROR_JIT_STACKLIMIT && enlarge_stack(workspace));
    return rc;
}

ft_status ft_regex_next(ft_regex_search *search, ft_regex_workspace *workspace, bool *found,
                        size_t *start, size_t *end)
{
    for (*found = false; !*found && search->at <= search->bytes;) {
        int rc = match(search, workspace);
        if (rc == PCRE2_ERROR_NOMATCH)
            break;
        if (rc < 0)
            return rc == PCRE2_ERROR_NOMEMORY ? FT_ENOMEM : FT_ELIMIT;
        const PCRE2_SIZE *ovector = pcre2_get_ovector_pointer(workspace->match);
        *start = ovector[0];
        *end = ovector[1];
        if (*start == *end && search->any && *end == search->last) {
            search->at = search->at < search->bytes ? next_char_boundary(search, search->at + 1)
                                                    : search->bytes + 1;
            continue;
        }
        search->at = search->last = *end;
        search->any = *found = true;
    }
    return FT_OK;
}
