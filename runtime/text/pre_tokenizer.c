/*
 * pre_tokenizer.c - depth first: each piece goes through all steps before the next piece is split
 * off.
 *
 * So no list of pieces is kept, and a step needs memory for at most one transformed piece.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/pre_tokenizer.h"

#include "runtime/text/bert_normalizer.h"
#include "runtime/text/unicode/byte_chars.h"
#include "runtime/error.h"
#include "runtime/text/unicode/unicode.h"
#include "runtime/base/utf8.h"

#include <string.h>

/* The input of step `step`. */
typedef struct {
    ft_word_splitter *splitter;
    size_t step;
    const char *text;
    size_t bytes;
    bool first;
} piece;

static ft_status process(const piece *in);

static const ft_pretokenize_step *step_of(const piece *in)
{
    return &in->splitter->pretokenizer->step[in->step];
}

/* Pass [start, end) of a text to the next step. */
static ft_status pass_on(const piece *in, size_t start, size_t end)
{
    piece part = { .splitter = in->splitter,
                   .step = in->step + 1,
                   .text = in->text + start,
                   .bytes = end - start,
                   .first = in->first && start == 0 };
    return start < end ? process(&part) : FT_OK;
}

/* ---- Splitting ------------------------------------------------------------------------------ */

/* A pending segment, which may be merged with the next one. */
typedef struct {
    size_t start, end;
    bool pending, match;
} segment;

static bool merges_with(ft_split_behavior split, const segment *last, bool match)
{
    switch (split) {
    case FT_SPLIT_CONTIGUOUS:
        return last->match == match;
    case FT_SPLIT_MERGED_WITH_PREVIOUS:
        return match && !last->match;
    case FT_SPLIT_MERGED_WITH_NEXT:
        return last->match && !match;
    case FT_SPLIT_ISOLATED:
    case FT_SPLIT_REMOVED:
        break;
    }
    return false;
}

static ft_status pass_segment(const piece *in, const segment *last)
{
    if (!last->pending || (step_of(in)->split == FT_SPLIT_REMOVED && last->match))
        return FT_OK;
    return pass_on(in, last->start, last->end);
}

/* Add the segment [last->end, end), which is a match or lies between two matches. */
static ft_status add_segment(const piece *in, segment *last, size_t end, bool match)
{
    const ft_pretokenize_step *step = step_of(in);
    size_t start = last->end;
    match ^= step->invert;
    if (!last->pending || !merges_with(step->split, last, match)) {
        FT_TRY(pass_segment(in, last));
        last->start = start;
    }
    last->end = end;
    last->pending = true;
    last->match = match;
    return FT_OK;
}

static ft_status add_match(const piece *in, segment *last, size_t start, size_t end)
{
    if (last->end < start)
        FT_TRY(add_segment(in, last, start, false));
    return add_segment(in, last, end, true);
}

static ft_status finish(const piece *in, segment *last)
{
    if (last->end < in->bytes)
        FT_TRY(add_segment(in, last, in->bytes, false));
    return pass_segment(in, last);
}

static ft_status split_at_regex(const piece *in)
{
    segment last = { 0 };
    size_t start, end;
    bool found;
    ft_regex_search search = { .regex = &step_of(in)->regex, .text = in->text, .bytes = in->bytes };
    ft_regex_workspace *workspace = &in->splitter->regex[in->step];
    for (;;) {
        FT_TRY(ft_regex_next(&search, workspace, &found, &start, &end));
        if (!found)
            return finish(in, &last);
        FT_TRY(add_match(in, &last, start, end));
    }
}

static ft_status split_at_digits(const piece *in)
{
    segment last = { 0 };
    const char *next = in->text, *end = in->text + in->bytes;
    while (next < end) {
        size_t start = (size_t) (next - in->text);
        if (ft_char_is_numeric(ft_utf8_decode_next(&next)))
            FT_TRY(add_match(in, &last, start, (size_t) (next - in->text)));
    }
    return finish(in, &last);
}

static ft_status split_at_character(const piece *in)
{
    const char *character = step_of(in)->character, *found;
    size_t bytes = strlen(character);
    segment last = { 0 };
    while ((found = memmem(in->text + last.end, in->bytes - last.end, character, bytes)) != NULL) {
        size_t start = (size_t) (found - in->text);
        FT_TRY(add_match(in, &last, start, start + bytes));
    }
    return finish(in, &last);
}

static ft_status split_bert(const piece *in)
{
    const char *next = in->text, *end = in->text + in->bytes, *word;
    size_t bytes;
    while ((bytes = ft_bert_next_word(&next, end, &word)) > 0) {
        size_t start = (size_t) (word - in->text);
        FT_TRY(pass_on(in, start, start + bytes));
    }
    return FT_OK;
}

/* ---- Transformations ------------------------------------------------------------------------- */

static bool replace_spaces(const piece *in, ft_strbuf *out)
{
    const char *character = step_of(in)->character;
    size_t bytes = strlen(character);
    if (!ft_strbuf_reserve(out, in->bytes))
        return false;
    for (size_t i = 0; i < in->bytes; i++) {
        bool is_space = in->text[i] == ' ';
        if (!ft_strbuf_append(out, is_space ? character : in->text + i, is_space ? bytes : 1))
            return false;
    }
    return true;
}

static bool map_bytes(const piece *in, ft_strbuf *out)
{
    if (!ft_strbuf_reserve(out, 2 * in->bytes))
        return false;
    for (size_t i = 0; i < in->bytes; i++)
        if (!ft_strbuf_append_char(out, ft_byte_to_char((uint8_t) in->text[i])))
            return false;
    return true;
}

static bool prepend_character(const piece *in, ft_strbuf *out)
{
    const ft_pretokenize_step *step = step_of(in);
    size_t bytes = strlen(step->character);
    bool present = in->bytes >= bytes && memcmp(in->text, step->character, bytes) == 0;
    if (!present && (in->first || !step->only_first) &&
        !ft_strbuf_append(out, step->character, bytes))
        return false;
    return ft_strbuf_append(out, in->text, in->bytes);
}

static ft_status transform(const piece *in, bool (*function)(const piece *, ft_strbuf *))
{
    ft_word_splitter *splitter = in->splitter;
    ft_strbuf *out = &splitter->text[in->step];
    ft_strbuf_reset(out, in->bytes + splitter->growth_left);
    if (!function(in, out)) {
        splitter->overflowed = out->overflowed;
        return out->overflowed ? FT_ELIMIT : FT_ENOMEM;
    }
    splitter->growth_left = out->max_bytes - out->bytes; /* no transformation shortens a piece */
    piece transformed = *in;
    transformed.text = out->data;
    return pass_on(&transformed, 0, out->bytes);
}

/* ------------------------------------------------------------------------------------------ */

static ft_status process(const piece *in)
{
    if (in->step == in->splitter->pretokenizer->count)
        return in->splitter->on_word(in->splitter->user, in->text, in->bytes);
    switch (step_of(in)->kind) {
    case FT_PRETOKENIZE_BERT:
        return split_bert(in);
    case FT_PRETOKENIZE_REGEX:
        return split_at_regex(in);
    case FT_PRETOKENIZE_DIGITS:
        return split_at_digits(in);
    case FT_PRETOKENIZE_CHAR:
        return split_at_character(in);
    case FT_PRETOKENIZE_REPLACE_SPACES:
        return transform(in, replace_spaces);
    case FT_PRETOKENIZE_PREPEND:
        return transform(in, prepend_character);
    case FT_PRETOKENIZE_BYTE_LEVEL:
        return transform(in, map_bytes);
    }
    return FT_OK;
}

ft_status ft_word_splitter_run(ft_word_splitter *splitter, const char *text, size_t bytes,
                               bool first)
{
    piece input = { .splitter = splitter, .text = text, .bytes = bytes, .first = first };
    return process(&input);
}

ft_status ft_word_splitter_init(ft_word_splitter *splitter, size_t bytes)
{
    splitter->growth_left = ft_strbuf_growth_limit(bytes);
    for (size_t i = 0; i < splitter->pretokenizer->count; i++)
        if (splitter->pretokenizer->step[i].kind == FT_PRETOKENIZE_REGEX)
            FT_TRY(ft_regex_workspace_init(&splitter->regex[i], bytes));
    return FT_OK;
}

void ft_word_splitter_fini(ft_word_splitter *splitter)
{
    for (size_t i = 0; i < FT_PRETOKENIZE_MAX_STEPS; i++) {
        ft_strbuf_fini(&splitter->text[i]);
        ft_regex_workspace_fini(&splitter->regex[i]);
    }
}

void ft_pretokenizer_fini(ft_pretokenizer *pretokenizer)
{
    for (size_t i = 0; i < pretokenizer->count; i++)
        ft_regex_fini(&pretokenizer->step[i].regex);
    *pretokenizer = (ft_pretokenizer){ 0 };
}
