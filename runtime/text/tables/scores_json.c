/*
 * scores_json.c - read the pieces of a Unigram model: [["<unk>", 0.0], ["the", -3.5], ...].
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/tables/vocabulary_json.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/text/tables/score_number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The state of reading the table: `string` has space for one piece. */
typedef struct {
    ft_json_scanner scan;
    char *string;
    ft_vocabulary *vocabulary;
    double *score; /* [vocabulary->count], NaN for pieces that are only decoded */
    size_t capacity;
} reader;

static ft_status no_memory(const reader *r)
{
    return ft_fail(r->scan.err, FT_ENOMEM, "%s: no memory", r->scan.file);
}

static void skip_spaces(ft_json_scanner *scan)
{
    while (scan->at < scan->end &&
           (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\t' || *scan->at == '\r'))
        scan->at++;
}

/* A number, or null. */
static ft_status read_score(reader *r, double *score)
{
    *score = (double) NAN;
    skip_spaces(&r->scan);
    if (r->scan.end - r->scan.at >= 4 && memcmp(r->scan.at, "null", 4) == 0) {
        r->scan.at += 4;
        return FT_OK;
    }
    return ft_score_number_scan(&r->scan, score);
}

/* ["the", -3.5] */
static ft_status read_piece(reader *r)
{
    const char *text;
    double score;
    size_t index = r->vocabulary->count;
    FT_TRY(ft_json_scan_expect(&r->scan, '['));
    r->scan.out = r->string;
    FT_TRY(ft_json_scan_string(&r->scan, &text));
    size_t bytes = (size_t) (r->scan.out - text) - 1;
    FT_TRY(ft_json_scan_expect(&r->scan, ','));
    FT_TRY(read_score(r, &score));
    FT_TRY(ft_json_scan_close(&r->scan, ']'));
    if (index == r->capacity) {
        double *grown = ft_array_grow(r->score, &r->capacity, 1024, sizeof *grown);
        if (grown == NULL)
            return no_memory(r);
        r->score = grown;
    }
    r->score[index] = score;
    if (index > INT32_MAX ||
        ft_vocabulary_add_last(r->vocabulary, text, bytes, (int32_t) index) != FT_OK)
        return no_memory(r);
    return FT_OK;
}

static ft_status read_pieces(reader *r)
{
    FT_TRY(ft_json_scan_expect(&r->scan, '['));
    if (ft_json_scan_accept(&r->scan, ']'))
        return FT_OK;
    do
        FT_TRY(read_piece(r));
    while (ft_json_scan_accept(&r->scan, ','));
    return ft_json_scan_close(&r->scan, ']');
}

/* Ten less than the lowest score, as in SentencePiece. */
static double unknown_score(const reader *r)
{
    double lowest = (double) INFINITY;
    for (size_t i = 0; i < r->vocabulary->count; i++)
        lowest = r->score[i] < lowest ? r->score[i] : lowest;
    return lowest - 10;
}

/* Of pieces with equal texts only the last one is found; the empty text is not in a word. */
static size_t list_pieces(const reader *r, ft_scored_piece *piece)
{
    const ft_vocabulary *v = r->vocabulary;
    size_t count = 0;
    for (size_t i = 0; i < v->count; i++) {
        const ft_vocabulary_token *token = &v->token[i];
        const char *text = ft_vocabulary_token_text(v, token);
        if (token->bytes > 0 && !isnan(r->score[i]) &&
            ft_vocabulary_find(v, text, token->bytes) == token)
            piece[count++] = (ft_scored_piece){ text, token->bytes, token->id, r->score[i] };
    }
    return count;
}

static ft_status build(const reader *r, ft_unigram *unigram)
{
    ft_scored_piece *piece = ft_calloc(r->vocabulary->count, sizeof *piece);
    if (piece == NULL || !ft_vocabulary_sort(r->vocabulary)) {
        free(piece);
        return no_memory(r);
    }
    unigram->unknown_score = unknown_score(r);
    ft_byte_tokens_find(r->vocabulary, unigram->byte_id);
    ft_status rc = ft_piece_trie_build(&unigram->trie, piece, list_pieces(r, piece));
    free(piece);
    if (rc == FT_ELIMIT)
        return ft_fail(r->scan.err, rc, "%s: model.vocab: more than 2^25 prefixes of pieces",
                       r->scan.file);
    return rc == FT_OK ? rc : no_memory(r);
}

ft_status ft_json_read_scores(const ft_tokenizer_tables *tables, ft_vocabulary *vocabulary,
                              ft_unigram *unigram, ft_error *err)
{
    const unsigned char *json = (const unsigned char *) tables->json;
    reader r = { .scan = { .file = tables->file,
                           .tensor = "model.vocab",
                           .what = "file",
                           .start = json,
                           .at = json + tables->vocab.start,
                           .end = json + tables->vocab.end,
                           .err = err },
                 .vocabulary = vocabulary };
    r.string = malloc(tables->vocab.end - tables->vocab.start);
    ft_status rc = r.string == NULL ? no_memory(&r) : read_pieces(&r);
    if (rc == FT_OK)
        rc = build(&r, unigram);
    free(r.string);
    free(r.score);
    return rc;
}
