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
    STEPS_OF_A_TEXT = 1 << 22,
    STEPS_OF_A_BYTE = 32,
    ORDINARY_CODE = 8 << 10, /* bytes; published patterns take at most 5000 */
    STACK_BYTES = 64 << 20,
    HEAP_KIB = 64 << 10,
    NESTING = 64,
};

/* ---- Compiling ---------------------------------------------------------------------------- */

/* The largest number after a brace: an item that fails may have run over as many characters. */
static unsigned long longest_run(const char *pattern, size_t bytes)
{
    unsigned long most = 0;
    for (size_t i = 0; i < bytes; i++) {
        bool code = i > 0 && pattern[i - 1] == 'x'; /* \x{123} */
        unsigned long run = pattern[i] == '{' && !code ? strtoul(pattern + i + 1, NULL, 10) : 0;
        most = run > most ? run : most;
    }
    return most;
}

/* The cost of a step: long code may be a class of thousands of ranges. */
static uint64_t weigh(const void *code, const char *pattern, size_t bytes)
{
    size_t size = 0;
    pcre2_pattern_info(code, PCRE2_INFO_SIZE, &size);
    return (size <= ORDINARY_CODE ? 1 : size / 256) + longest_run(pattern, bytes) / 16;
}

static ft_status compile(ft_regex *regex, const char *pattern, size_t bytes, uint32_t options,
                         char why[FT_REGEX_WHY])
{
    int code;
    PCRE2_SIZE offset;
    PCRE2_UCHAR text[100];
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (context == NULL)
        return FT_ENOMEM;
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(context, NESTING);
    regex->code = pcre2_compile((PCRE2_SPTR) pattern, bytes,
                                options | PCRE2_UTF | PCRE2_AUTO_CALLOUT, &code, &offset, context);
    pcre2_compile_context_free(context);
    if (regex->code != NULL) {
        regex->step = weigh(regex->code, pattern, bytes);
        pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE); /* without JIT, matching is slow */
        return FT_OK;
    }
    pcre2_get_error_message(code, text, sizeof text);
    snprintf(why, FT_REGEX_WHY, "a valid pattern: %s", (const char *) text);
    return FT_EFORMAT;
}

static ft_status check_length(const char *pattern, char why[FT_REGEX_WHY])
{
    size_t bytes = strlen(pattern);
    if (bytes > 0 && bytes <= FT_REGEX_MAX_PATTERN)
        return FT_OK;
    snprintf(why, FT_REGEX_WHY, "a pattern of 1 to %d bytes, found %zu", FT_REGEX_MAX_PATTERN,
             bytes);
    return FT_EUNSUPPORTED;
}

ft_status ft_regex_compile(ft_regex *regex, const char *pattern, char why[FT_REGEX_WHY])
{
    ft_text spelled = { 0 };
    FT_TRY(check_length(pattern, why));
    ft_status rc = ft_regex_translate(pattern, &spelled, why);
    /* In Oniguruma, ^ and $ match at lines. */
    if (rc == FT_OK)
        rc = compile(regex, spelled.data, spelled.bytes, PCRE2_UCP | PCRE2_MULTILINE, why);
    ft_text_fini(&spelled);
    return rc;
}

ft_status ft_regex_literal(ft_regex *regex, const char *text, char why[FT_REGEX_WHY])
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
static int on_item(pcre2_callout_block *block, void *user)
{
    ft_regex_room *room = user;
    size_t at = block->current_position, ran = at > room->at ? at - room->at : 0;
    uint64_t cost = (1 + ran) * room->step;
    room->at = at;
    if (room->steps < cost)
        return PCRE2_ERROR_CALLOUT;
    room->steps -= cost;
    return 0;
}

ft_status ft_regex_room_init(ft_regex_room *room, size_t bytes)
{
    *room = (ft_regex_room){
        .match = pcre2_match_data_create(1, NULL),
        .context = pcre2_match_context_create(NULL),
        .steps = STEPS_OF_A_TEXT + (uint64_t) bytes * STEPS_OF_A_BYTE,
    };
    if (room->match == NULL || room->context == NULL)
        return FT_ENOMEM;
    pcre2_set_heap_limit(room->context, HEAP_KIB);
    pcre2_set_match_limit(room->context, UINT32_MAX);
    pcre2_set_callout(room->context, on_item, room);
    return FT_OK;
}

void ft_regex_room_fini(ft_regex_room *room)
{
    pcre2_match_data_free(room->match);
    pcre2_match_context_free(room->context);
    pcre2_jit_stack_free(room->stack);
}

/* The first character boundary from `at` on, or the end of the text. */
static size_t boundary(const ft_regex_search *search, size_t at)
{
    while (at < search->bytes && ft_utf8_continues(search->text[at]))
        at++;
    return at < search->bytes ? at : search->bytes;
}

/* Switch to a larger stack; false when it is already in use. */
static bool enlarge_stack(ft_regex_room *room)
{
    if (room->stack != NULL)
        return false;
    room->stack = pcre2_jit_stack_create(1 << 15, STACK_BYTES, NULL);
    pcre2_jit_stack_assign(room->context, NULL, room->stack);
    return room->stack != NULL;
}

/* Match from search->at on; returns PCRE2's result. */
static int match(const ft_regex_search *search, ft_regex_room *room)
{
    int rc;
    do {
        room->at = search->at;
        room->step = search->regex->step;
        rc = pcre2_match(search->regex->code, (PCRE2_SPTR) search->text, search->bytes, search->at,
                         PCRE2_NO_UTF_CHECK, room->match, room->context);
    } while (rc == PCRE2_ERROR_JIT_STACKLIMIT && enlarge_stack(room));
    return rc;
}

ft_status ft_regex_next(ft_regex_search *search, ft_regex_room *room, bool *found, size_t *start,
                        size_t *end)
{
    for (*found = false; !*found && search->at <= search->bytes;) {
        int rc = match(search, room);
        if (rc == PCRE2_ERROR_NOMATCH)
            break;
        if (rc < 0)
            return rc == PCRE2_ERROR_NOMEMORY ? FT_ENOMEM : FT_ELIMIT;
        const PCRE2_SIZE *place = pcre2_get_ovector_pointer(room->match);
        *start = place[0];
        *end = place[1];
        if (*start == *end && search->any && *end == search->last) {
            search->at =
                search->at < search->bytes ? boundary(search, search->at + 1) : search->bytes + 1;
            continue;
        }
        search->at = search->last = *end;
        search->any = *found = true;
    }
    return FT_OK;
}
