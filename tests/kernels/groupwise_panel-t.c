/*
 * groupwise_panel-t.c - the panel layout of quantized weights: every element has its own bits, at
 * the position from which kernels read them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/groupwise.h"
#include "runtime/mem.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

static const size_t shapes[][2] = { { 1, 1 }, { 32, 32 }, { 33, 31 }, { 7, 100 }, { 96, 160 } };

/* Sets the bits of one element after the other: none is set twice, none is out of bounds. */
static void test_places(size_t rows, size_t cols, int bits)
{
    size_t bytes = ft_panel_bytes(rows, cols, bits), twice = 0, outside = 0;
    uint32_t *seen = calloc(1, bytes + 4), mask = (1u << bits) - 1;
    if (seen == NULL)
        bail_out("out of memory");
    for (size_t row = 0; row < rows; row++)
        for (size_t col = 0; col < cols; col++) {
            size_t word = ft_panel_word(row, col, cols, bits);
            int shift = ft_panel_shift(col, bits);
            outside += 4 * word + 4 > bytes || shift < 0 || shift % bits != 0 || shift + bits > 32;
            twice += (seen[word] & mask << shift) != 0;
            seen[word] |= mask << shift;
        }
    is_int((long long) (outside + twice), 0,
           "%zu x %zu of %d bits: every weight has its own position in the panel", rows, cols,
           bits);
    free(seen);
}

static void test_code(int bits)
{
    enum { ROWS = 40, COLS = 70 };
    size_t words = ft_panel_bytes(ROWS, COLS, bits) / 4, wrong = 0;
    uint32_t *panels = calloc(words, 4), mask = (1u << bits) - 1;
    if (panels == NULL)
        bail_out("out of memory");
    for (size_t i = 0; i < (size_t) ROWS * COLS; i++) {
        size_t row = i / COLS, col = i % COLS;
        panels[ft_panel_word(row, col, COLS, bits)] |= (uint32_t) (i * 2654435761u >> 20 & mask)
                                                       << ft_panel_shift(col, bits);
    }
    for (size_t i = 0; i < (size_t) ROWS * COLS; i++)
        wrong += ft_panel_value(panels, i / COLS, i % COLS, COLS, bits) !=
                 (i * 2654435761u >> 20 & mask);
    is_int((long long) wrong, 0, "weights of %d bits are read back as they were written", bits);
    free(panels);
}

/*
 * Lane 4g + t of a warp needs, for mma.m16n8k16, the columns 2t, 2t + 1, 2t + 8 and 2t + 9 of each
 * 16; the 16 bytes at word 32t + 4g must hold them, for four rows.
 */
static void test_beams(int bits)
{
    size_t cols = 96, wide = bits == 4 ? 32 : 16, wrong = 0;
    for (size_t lane = 0; lane < 32; lane++)
        for (size_t first = 0; first < cols; first += wide)
            for (size_t step = 0; step < wide; step += 16)
                for (size_t i = 0; i < 16; i++) {
                    static const size_t column[4] = { 0, 1, 8, 9 };
                    size_t g = lane / 4, t = lane % 4, row = 4 * g + i / 4;
                    size_t word =
                        ft_panel_word(row, first + step + 2 * t + column[i % 4], cols, bits);
                    wrong += word != first / wide * 128 + 32 * t + row;
                }
    is_int((long long) wrong, 0, "16 bytes hold the weights of one SIMD lane, %d bits", bits);
}

/* Neighbours that one instruction converts to two f16 are 16 bits apart, or adjacent bytes. */
static void test_pairs(void)
{
    size_t wrong = 0;
    for (size_t col = 0; col < 64; col += 2) {
        wrong += ft_panel_shift(col + 1, 4) - ft_panel_shift(col, 4) != 16;
        wrong += ft_panel_shift(col + 1, 8) - ft_panel_shift(col, 8) != 8;
    }
    is_int((long long) wrong, 0,
           "neighbouring columns are 16 bits apart for 4-bit weights and 8 for 8-bit ones");
}

static void test_groups(void)
{
    ft_groupwise whole = { 0 }, some = { .group = 64 };
    is_int((long long) ft_groupwise_groups(&whole, 100), 1,
           "a group size of 0 makes a row one group");
    is_int((long long) ft_groupwise_groups(&some, 128), 2, "128 columns have two groups of 64");
    is_int((long long) ft_groupwise_groups(&some, 129), 3, "129 columns have three groups of 64");
    is_int((long long) ft_groupwise_scale_index(&some, 5, 64, 40), 64 + 5,
           "groups follow each other in the scales");
    is_int((long long) ft_groupwise_scale_count(&some, 40, 129), 3 * 64,
           "the groups of padded rows have their place in the scales");
    is_int(ft_groupwise_zero_point(&some, 0, 4), 8, "the default zero point of 4 bits is 8");
    is_int(ft_groupwise_zero_point(&some, 0, 8), 128, "the default zero point of 8 bits is 128");
}

int main(void)
{
    for (size_t i = 0; i < FT_COUNT(shapes); i++)
        for (int bits = 4; bits <= 8; bits += 4)
            test_places(shapes[i][0], shapes[i][1], bits);
    for (int bits = 4; bits <= 8; bits += 4) {
        test_code(bits);
        test_beams(bits);
    }
    test_pairs();
    test_groups();
    return done_testing();
}
