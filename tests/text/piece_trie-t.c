/*
 * piece_trie-t.c - a trie of many pieces finds exactly the pieces that a text starts with.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/models/piece_trie.h"
#include "runtime/mem.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES = 20000, MAX_BYTES = 12 };

static char text[PIECES][MAX_BYTES];
static ft_scored_piece piece[PIECES];

static unsigned below(uint64_t *state, unsigned limit)
{
    *state = *state * 6364136223846793005 + 1442695040888963407;
    return (unsigned) (*state >> 33) % limit;
}

/* Different random texts of bytes below `letters`. */
static size_t make_pieces(unsigned letters)
{
    uint64_t state = letters;
    for (size_t i = 0; i < PIECES; i++) {
        uint32_t bytes = 1 + below(&state, MAX_BYTES);
        for (uint32_t k = 0; k < bytes; k++)
            text[i][k] = (char) below(&state, letters);
        piece[i] = (ft_scored_piece){ text[i], bytes, (int32_t) i, -(double) i };
    }
    return PIECES;
}

static int by_text(const void *a, const void *b)
{
    const ft_scored_piece *x = a, *y = b;
    int order = memcmp(x->text, y->text, ft_min_size(x->bytes, y->bytes));
    return order != 0 ? order : (int) x->bytes - (int) y->bytes;
}

/* Keep one piece of each text; returns their number. */
static size_t drop_duplicates(size_t count)
{
    size_t kept = 0;
    qsort(piece, count, sizeof *piece, by_text);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || by_text(&piece[kept - 1], &piece[i]) != 0)
            piece[kept++] = piece[i];
    return kept;
}

/* Whether the trie has the piece, and of its prefixes those that are pieces. */
static bool finds(const ft_piece_trie *trie, size_t count, const ft_scored_piece *wanted)
{
    uint32_t unit = FT_PIECE_TRIE_ROOT;
    for (uint32_t bytes = 1; bytes <= wanted->bytes; bytes++) {
        const ft_scored_piece prefix = { wanted->text, bytes, 0, 0 };
        const ft_scored_piece *known = bsearch(&prefix, piece, count, sizeof *piece, by_text);
        unit = ft_piece_trie_step(trie, unit, wanted->text[bytes - 1]);
        if (unit == FT_PIECE_TRIE_ROOT)
            return false;
        bool found = !isnan(trie->unit[unit].score);
        if (found != (known != NULL) ||
            (found && (trie->id[unit] != known->id || trie->unit[unit].score != known->score)))
            return false;
    }
    return true;
}

static void test_pieces(unsigned letters)
{
    ft_piece_trie trie = { 0 };
    size_t count = drop_duplicates(make_pieces(letters)), found = 0, strange = 0;
    if (ft_piece_trie_build(&trie, piece, count) != FT_OK)
        bail_out("no memory");
    for (size_t i = 0; i < count; i++)
        found += finds(&trie, count, &piece[i]);
    for (unsigned byte = letters; byte < 256; byte++)
        strange += ft_piece_trie_step(&trie, FT_PIECE_TRIE_ROOT, (char) byte) != FT_PIECE_TRIE_ROOT;
    ok(found == count, "a trie of %zu pieces of %u letters finds all and their prefixes", count,
       letters);
    ok(strange == 0, "a trie of pieces of %u letters leads nowhere by another letter", letters);
    ft_piece_trie_fini(&trie);
}

static void test_empty(void)
{
    ft_piece_trie trie = { 0 };
    ok(ft_piece_trie_build(&trie, NULL, 0) == FT_OK &&
           ft_piece_trie_step(&trie, FT_PIECE_TRIE_ROOT, 'a') == FT_PIECE_TRIE_ROOT,
       "a trie of no pieces finds none");
    ft_piece_trie_fini(&trie);
}

int main(void)
{
    test_empty();
    test_pieces(1);
    test_pieces(2);
    test_pieces(30);
    test_pieces(256);
    return done_testing();
}
