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
    ft_word_cutter *cutter;
    size_t step;
    const char *text;
    size_t bytes;
    bool first;
} piece;

static ft_status cut(const piece *in);

static const ft_pretokenize_step *step_of(const piece *in)
{
    return &in->cutter->pretokenizer->step[in->step];
}

/* Pass [start, end) of a text to the next step. */
static ft_status pass(const piece *in, size_t start, size_t end)
{
    piece part = { .cutter = in->cutter,
                   .step = in->step + 1,
                   .text = in->text + start,
                   .bytes = end - start,
                   .first = in->first && start == 0 };
    return start < end ? cut(&part) : FT_OK;
}

/* ---- Splitting ------------------------------------------------------------------------------ */

/* A pending segment, which may be merged with the next one. */
typedef struct {
    size_t start, end;
    bool any, match;
} stretch;

static bool joins(ft_split split, const stretch *last, bool match)
{
    switch (split) {
    case FT_SPLIT_CONTIGUOUS:
        return last->match == match;
    case FT_SPLIT_WITH_PREVIOUS:
        return match && !last->match;
    case FT_SPLIT_WITH_NEXT:
        return last->match && !match;
    case FT_SPLIT_ISOLATED:
    case FT_SPLIT_REMOVED:
        break;
    }
    return false;
}

static ft_status pass_stretch(const piece *in, const stretch *last)
{
    if (!last->any || (step_of(in)->split == FT_SPLIT_REMOVED && last->match))
        return FT_OK;
    return pass(in, last->start, last->end);
}

/* Add the segment [last->end, end), which is a match or lies between two matches. */
static ft_status add_stretch(const piece *in, stretch *last, size_t end, bool match)
{
    const ft_pretokenize_step *step = step_of(in);
    size_t start = last->end;
    match ^= step->invert;
    if (!last->any || !joins(step->split, last, match)) {
        FT_TRY(pass_stretch(in, last));
        last->start = start;
    }
    last->end = end;
    last->any = true;
    last->match = match;
    return FT_OK;
}

static ft_status add_match(const piece *in, stretch *last, size_t start, size_t end)
{
    if (last->end < start)
        FT_TRY(add_stretch(in, last, start, false));
    return add_stretch(in, last, end, true);
}

static ft_status finish(const piece *in, stretch *last)
{
    if (last->end < in->bytes)
        FT_TRY(add_stretch(in, last, in->bytes, false));
    return pass_stretch(in, last);
}

static ft_status cut_at_regex(const piece *in)
{
    stretch last = { 0 };
    size_t start, end;
    bool found;
    ft_regex_search search = { .regex = &step_of(in)->regex, .text = in->text, .bytes = in->bytes };
    ft_regex_room *room = &in->cutter->regex[in->step];
    for (;;) {
        FT_TRY(ft_regex_next(&search, room, &found, &start, &end));
        if (!found)
            return finish(in, &last);
        FT_TRY(add_match(in, &last, start, end));
    }
}

static ft_status cut_at_digits(const piece *in)
{
    stretch last = { 0 };
    const char *next = in->text, *end = in->text + in->bytes;
    while (next < end) {
        size_t start = (size_t) (next - in->text);
        if (ft_char_is_numeric(ft_utf8_next(&next)))
            FT_TRY(add_match(in, &last, start, (size_t) (next - in->text)));
    }
    return finish(in, &last);
}

static ft_status cut_at_character(const piece *in)
{
    const char *character = step_of(in)->character, *found;
    size_t bytes = strlen(character);
    stretch last = { 0 };
    while ((found = memmem(in->text + last.end, in->bytes - last.end, character, bytes)) != NULL) {
        size_t start = (size_t) (found - in->text);
        FT_TRY(add_match(in, &last, start, start + bytes));
    }
    return finish(in, &last);
}

static ft_status cut_as_bert(const piece *in)
{
    const char *next = in->text, *end = in->text + in->bytes, *word;
    size_t bytes;
    while ((bytes = ft_bert_next_word(&next, end, &word)) > 0) {
        size_t start = (size_t) (word - in->text);
        FT_TRY(pass(in, start, start + bytes));
    }
    return FT_OK;
}

/* ---- Transformations ------------------------------------------------------------------------- */

static bool spell_blanks(const piece *in, ft_text *out)
{
    const char *character = step_of(in)->character;
    size_t bytes = strlen(character);
    if (!ft_text_reserve(out, in->bytes))
        return false;
    for (size_t i = 0; i < in->bytes; i++) {
        bool blank = in->text[i] == ' ';
        if (!ft_text_put(out, blank ? character : in->text + i, blank ? bytes : 1))
            return false;
    }
    return true;
}

static bool spell_bytes(const piece *in, ft_text *out)
{
    if (!ft_text_reserve(out, 2 * in->bytes))
        return false;
    for (size_t i = 0; i < in->bytes; i++)
        if (!ft_text_put_char(out, ft_char_of_byte((uint8_t) in->text[i])))
            return false;
    return true;
}

static bool spell_prefix(const piece *in, ft_text *out)
{
    const ft_pretokenize_step *step = step_of(in);
    size_t bytes = strlen(step->character);
    bool there = in->bytes >= bytes && memcmp(in->text, step->character, bytes) == 0;
    if (!there && (in->first || !step->only_first) && !ft_text_put(out, step->character, bytes))
        return false;
    return ft_text_put(out, in->text, in->bytes);
}

static ft_status respell(const piece *in, bool (*spell)(const piece *, ft_text *))
{
    ft_word_cutter *cutter = in->cutter;
    ft_text *out = &cutter->text[in->step];
    ft_text_begin(out, in->bytes + cutter->growth);
    if (!spell(in, out)) {
        cutter->grew = out->full;
        return out->full ? FT_ELIMIT : FT_ENOMEM;
    }
    cutter->growth = out->most - out->bytes; /* no transformation shortens a piece */
    piece spelled = *in;
    spelled.text = out->data;
    return pass(&spelled, 0, out->bytes);
}

/* ------------------------------------------------------------------------------------------ */

static ft_status cut(const piece *in)
{
    if (in->step == in->cutter->pretokenizer->count)
        return in->cutter->take(in->cutter->user, in->text, in->bytes);
    switch (step_of(in)->kind) {
    case FT_PRETOKENIZE_BERT:
        return cut_as_bert(in);
    case FT_PRETOKENIZE_REGEX:
        return cut_at_regex(in);
    case FT_PRETOKENIZE_DIGITS:
        return cut_at_digits(in);
    case FT_PRETOKENIZE_CHAR:
        return cut_at_character(in);
    case FT_PRETOKENIZE_BLANKS:
        return respell(in, spell_blanks);
    case FT_PRETOKENIZE_PREFIX:
        return respell(in, spell_prefix);
    case FT_PRETOKENIZE_BYTES:
        return respell(in, spell_bytes);
    }
    return FT_OK;
}

ft_status ft_cut_words(ft_word_cutter *cutter, const char *text, size_t bytes, bool first)
{
    piece whole = { .cutter = cutter, .text = text, .bytes = bytes, .first = first };
    return cut(&whole);
}

ft_status ft_word_cutter_init(ft_word_cutter *cutter, size_t bytes)
{
    cutter->growth = ft_text_growth(bytes);
    for (size_t i = 0; i < cutter->pretokenizer->count; i++)
        if (cutter->pretokenizer->step[i].kind == FT_PRETOKENIZE_REGEX)
            FT_TRY(ft_regex_room_init(&cutter->regex[i], bytes));
    return FT_OK;
}

void ft_word_cutter_fini(ft_word_cutter *cutter)
{
    for (size_t i = 0; i < FT_PRETOKENIZE_MAX_STEPS; i++) {
        ft_text_fini(&cutter->text[i]);
        ft_regex_room_fini(&cutter->regex[i]);
    }
}

void ft_pretokenizer_fini(ft_pretokenizer *pretokenizer)
{
    for (size_t i = 0; i < pretokenizer->count; i++)
        ft_regex_fini(&pretokenizer->step[i].regex);
    *pretokenizer = (ft_pretokenizer){ 0 };
}
