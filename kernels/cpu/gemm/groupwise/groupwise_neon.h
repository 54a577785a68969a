/*
 * groupwise_neon.h - dot products with NEON, part of groupwise_impl.h.
 *
 * A vector of x holds four quads, which the instructions select by lane. A vector of weights is
 * multiplied with all rows and digits of x before the next one is loaded.
 *
 * The including file defines vi_dot(&acc, w, x, lane, bits): acc += the four weights of each word
 * times quad `lane` of x. The weights are 4 bits, or 8 bits less WEIGHT_OFFSET. If x is 1, any
 * weights can be multiplied as if they had 4 bits: pairs of them fit 16 bits.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

enum { X_QUADS = 4 };

/* Quad `quad` of the words of a line. */
FT_INLINE vi word_quad(vi word, size_t quad, int bits)
{
    if (bits == 4)
        return vi_nibbles(word, quad == 1);
    return WEIGHT_OFFSET == 0 ? word : veorq_s32(word, vreinterpretq_s32_u8(vdupq_n_u8(0x80)));
}

/* The lines of four quads times these quads of x. */
FT_INLINE void dot_quads(acc_tile *s, const uint32_t *lines, const int8_t *x, size_t x_stride,
                         kernel_config f)
{
    int8x16_t x4[FT_PANEL_MAX_ROWS][DIGITS];
    FT_UNROLL
    for (size_t i = 0; i < f.rows; i++) {
        FT_UNROLL
        for (size_t p = 0; p < f.digits; p++)
            x4[i][p] = vld1q_s8(x + i * x_stride + p * FT_PANEL_K_BLOCK);
    }
    FT_UNROLL
    for (size_t first = 0; first < X_QUADS; first += line_quads(f), lines += FT_PANEL_ROWS) {
        FT_UNROLL
        for (size_t v = 0; v < f.vectors; v++) {
            vi word = vi_load(lines + v * LANES);
            vi both = vi_set(0); /* quads added byte by byte: 4 bits do not overflow */
            FT_UNROLL
            for (size_t quad = 0; quad < line_quads(f); quad++) {
                vi w = word_quad(word, quad, f.bits);
                both = quad == 0 ? w : vi_add(both, w);
                if (f.sum_weights && quad == line_quads(f) - 1)
                    vi_dot(&s->weight_sum[v], both, vdupq_n_s8(1), 0, 4);
                FT_UNROLL
                for (size_t i = 0; i < f.rows; i++) {
                    FT_UNROLL
                    for (size_t p = 0; p < f.digits; p++)
                        vi_dot(&s->acc[i][p][v], w, x4[i][p], first + quad, f.bits);
                }
            }
        }
    }
}

/* k_blocks of some weight vectors of a panel, times the same columns of x. */
FT_INLINE void dot_k_blocks(acc_tile *s, const uint32_t *weights_at, const int8_t *x,
                            size_t k_blocks, size_t x_stride, kernel_config f)
{
    size_t half_words = (size_t) f.bits / 2 * FT_PANEL_ROWS;
    for (size_t k_block = 0; k_block < k_blocks; k_block++, x += f.digits * FT_PANEL_K_BLOCK)
        for (size_t half = 0; half < 2; half++, weights_at += half_words) {
            FT_UNROLL
            for (size_t line = 0; line < half_words * sizeof *weights_at; line += 64)
                prefetch(weights_at, PREFETCH_BYTES + line);
            dot_quads(s, weights_at, x + half * FT_PANEL_K_BLOCK / 2, x_stride, f);
        }
}
