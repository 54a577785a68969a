/*
 * regex.c - compile, and match within limits.
 *
 * A call of PCRE2 looks for matches that start within a few bytes, shows it a short window of the
 * text, and has a small limit of steps.  One that runs into the limit or the window's end is
 * repeated with four times as much, and pays from what is set aside for the whole text.  So
 * ordinary matches cost nothing extra, a megabyte of blanks gets what it needs, and a pattern that
 * explodes, or reads on to the end from each byte, is given up soon.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/regex.h"

#include "runtime/error.h"
#include "runtime/utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <stdio.h>
#include <string.h>

enum {
    STARTS = 16, /* bytes */
    FIRST_WINDOW = 1024,
    FIRST_STEPS = 1000,
    STEPS_OF_A_TEXT = 1 << 24,
    STEPS_OF_A_BYTE = 64,
    HEAP_KIB = 256 << 10,
    NESTING = 64,
};

/* ---- Compiling ---------------------------------------------------------------------------- */

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
    regex->code =
        pcre2_compile((PCRE2_SPTR) pattern, bytes, options | PCRE2_UTF | PCRE2_USE_OFFSET_LIMIT,
                      &code, &offset, context);
    pcre2_compile_context_free(context);
    if (regex->code != NULL) {
        /* Where it cannot, matching is slow. */
        pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);
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
    /* Oniguruma's ^ and $ are those of lines. */
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

ft_status ft_regex_room_init(ft_regex_room *room, size_t bytes)
{
    room->match = pcre2_match_data_create(1, NULL);
    room->context = pcre2_match_context_create(NULL);
    room->steps = STEPS_OF_A_TEXT + (uint64_t) bytes * STEPS_OF_A_BYTE;
    if (room->match == NULL || room->context == NULL)
        return FT_ENOMEM;
    pcre2_set_heap_limit(room->context, HEAP_KIB);
    return FT_OK;
}

void ft_regex_room_fini(ft_regex_room *room)
{
    pcre2_match_data_free(room->match);
    pcre2_match_context_free(room->context);
}

/* The first place from `at` on where a character starts, or the end of the text. */
static size_t boundary(const ft_regex_search *search, size_t at)
{
    while (at < search->bytes && ft_utf8_continues(search->text[at]))
        at++;
    return at < search->bytes ? at : search->bytes;
}

static bool pay(ft_regex_room *room, uint64_t steps)
{
    bool enough = room->steps >= steps;
    room->steps = enough ? room->steps - steps : 0;
    return enough;
}

/* PCRE2's answer for matches that start from `from` on, within a few bytes. */
static int match_near(const ft_regex_search *search, size_t from, ft_regex_room *room)
{
    uint32_t limit = FIRST_STEPS, options = PCRE2_NO_UTF_CHECK;
    size_t window = FIRST_WINDOW;
    pcre2_set_offset_limit(room->context, from + STARTS);
    for (;;) {
        size_t end = boundary(search, from + window);
        uint32_t partial = end < search->bytes ? PCRE2_PARTIAL_HARD : 0;
        pcre2_set_match_limit(room->context, limit);
        int rc = pcre2_match(search->regex->code, (PCRE2_SPTR) search->text, end, from,
                             options | partial, room->match, room->context);
        if (rc == PCRE2_ERROR_PARTIAL && pay(room, window))
            window *= 4;
        else if (rc == PCRE2_ERROR_MATCHLIMIT && pay(room, limit))
            limit = limit < UINT32_MAX / 4 ? limit * 4 : UINT32_MAX;
        else if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
            options |= PCRE2_NO_JIT;
        else
            return rc;
    }
}

/* The same from search->at on, wherever the match starts. */
static int match(const ft_regex_search *search, ft_regex_room *room)
{
    size_t from = search->at;
    int rc = match_near(search, from, room);
    while (rc == PCRE2_ERROR_NOMATCH && from + STARTS < search->bytes) {
        from = boundary(search, from + STARTS + 1);
        rc = match_near(search, from, room);
    }
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
