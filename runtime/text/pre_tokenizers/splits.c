/*
 * splits.c - a split is a sequence of matches and of what lies between them; neighbours merge as
 * the behavior of the split says.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/pre_tokenizers/splits.h"

#include "runtime/error.h"
#include "runtime/text/normalizers/bert.h"
#include "runtime/text/unicode/scripts.h"
#include "runtime/text/unicode/unicode.h"

#include <string.h>

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

static ft_status pass_segment(const ft_piece *in, const segment *last)
{
    if (!last->pending || (ft_piece_step(in)->split == FT_SPLIT_REMOVED && last->match))
        return FT_OK;
    return ft_piece_pass_on(in, last->start, last->end);
}

/* Add the segment [last->end, end), which is a match or lies between two matches. */
static ft_status add_segment(const ft_piece *in, segment *last, size_t end, bool match)
{
    const ft_pretokenize_step *step = ft_piece_step(in);
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

static ft_status add_match(const ft_piece *in, segment *last, size_t start, size_t end)
{
    if (last->end < start)
        FT_TRY(add_segment(in, last, start, false));
    return add_segment(in, last, end, true);
}

static ft_status finish(const ft_piece *in, segment *last)
{
    if (last->end < in->text.bytes)
        FT_TRY(add_segment(in, last, in->text.bytes, false));
    return pass_segment(in, last);
}

ft_status ft_split_at_regex(const ft_piece *in)
{
    segment last = { 0 };
    size_t start, end;
    bool found;
    ft_regex_search search = { .regex = &ft_piece_step(in)->regex,
                               .text = in->text.text,
                               .bytes = in->text.bytes };
    ft_regex_workspace *workspace = &in->splitter->regex;
    for (;;) {
        FT_TRY(ft_regex_next(&search, workspace, &found, &start, &end));
        if (!found)
            return finish(in, &last);
        FT_TRY(add_match(in, &last, start, end));
    }
}

ft_status ft_split_at_characters(const ft_piece *in)
{
    bool (*matches)(uint32_t c) = ft_piece_step(in)->matches;
    segment last = { 0 };
    const char *text = in->text.text, *next = text, *end = text + in->text.bytes;
    while (next < end) {
        size_t start = (size_t) (next - text);
        if (matches(ft_utf8_decode_next(&next)))
            FT_TRY(add_match(in, &last, start, (size_t) (next - text)));
    }
    return finish(in, &last);
}

ft_status ft_split_at_character(const ft_piece *in)
{
    const char *character = ft_piece_step(in)->character, *text = in->text.text, *found;
    size_t bytes = strlen(character);
    segment last = { 0 };
    while ((found = memmem(text + last.end, in->text.bytes - last.end, character, bytes)) != NULL) {
        size_t start = (size_t) (found - text);
        FT_TRY(add_match(in, &last, start, start + bytes));
    }
    return finish(in, &last);
}

ft_status ft_split_bert(const ft_piece *in)
{
    const char *text = in->text.text, *next = text, *end = text + in->text.bytes, *word;
    size_t bytes;
    while ((bytes = ft_bert_next_word(&next, end, &word)) > 0) {
        size_t start = (size_t) (word - text);
        FT_TRY(ft_piece_pass_on(in, start, start + bytes));
    }
    return FT_OK;
}

typedef enum { WORD, SPACE, OTHER } char_kind;

static char_kind kind_of(uint32_t c)
{
    return ft_char_is_word(c) ? WORD : ft_char_is_space(c) ? SPACE : OTHER;
}

ft_status ft_split_whitespace(const ft_piece *in)
{
    const char *text = in->text.text, *next = text, *end = text + in->text.bytes;
    size_t start = 0;
    char_kind last = SPACE;
    while (next < end) {
        size_t at = (size_t) (next - text);
        char_kind kind = kind_of(ft_utf8_decode_next(&next));
        if (kind == last)
            continue;
        if (last != SPACE)
            FT_TRY(ft_piece_pass_on(in, start, at));
        start = at;
        last = kind;
    }
    return last == SPACE ? FT_OK : ft_piece_pass_on(in, start, in->text.bytes);
}

/* A run has the characters behind it that go with any script; those before the first run are lost.
 */
ft_status ft_split_scripts(const ft_piece *in)
{
    const char *text = in->text.text, *next = text, *end = text + in->text.bytes;
    size_t start = 0;
    int last = FT_SCRIPT_ANY;
    while (next < end) {
        size_t at = (size_t) (next - text);
        int script = ft_char_script(ft_utf8_decode_next(&next));
        if (script == FT_SCRIPT_ANY || script == last)
            continue;
        if (last != FT_SCRIPT_ANY)
            FT_TRY(ft_piece_pass_on(in, start, at));
        start = at;
        last = script;
    }
    return last == FT_SCRIPT_ANY ? FT_OK : ft_piece_pass_on(in, start, in->text.bytes);
}

ft_status ft_split_fixed_length(const ft_piece *in)
{
    const char *text = in->text.text, *next = text, *end = text + in->text.bytes;
    while (next < end) {
        size_t start = (size_t) (next - text);
        for (size_t i = 0; i < ft_piece_step(in)->length && next < end; i++)
            (void) ft_utf8_decode_next(&next);
        FT_TRY(ft_piece_pass_on(in, start, (size_t) (next - text)));
    }
    return FT_OK;
}
