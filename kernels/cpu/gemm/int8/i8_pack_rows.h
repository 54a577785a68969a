/*
 * i8_pack_rows.h - packs a row-major matrix into a panel, one vector of LANES rows at a time.
 *
 * Included once by the file of each instruction set.  The including file defines:
 *
 *   packed_vector(panel, row, rows, k, &quad_bytes)  where the vector of the rows from `row` on has
 *                                                    its first quad, and the bytes to the next one
 *   transpose_rows(quads, from, stride)              four quads of LANES rows of 16 bytes
 *   store_quad(to, quad)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static void pack_rows(void *panel, const int8_t *from, size_t stride, size_t rows, size_t k)
{
    size_t quads = (k + 3) / 4;
    for (size_t row = 0; row < rows; row += LANES) {
        size_t quad_bytes, n_rows = rows - row < LANES ? rows - row : LANES;
        char *to = packed_vector(panel, row, rows, k, &quad_bytes);
        for (size_t q = 0; q < quads; q += 4) {
            const int8_t *src = from + row * stride + q * 4;
            size_t src_stride = stride, width = k - q * 4 < 16 ? k - q * 4 : 16;
            int8_t edge[LANES][16] = { 0 };
            if (n_rows < LANES || width < 16) {
                for (size_t i = 0; i < n_rows; i++)
                    memcpy(edge[i], src + i * stride, width);
                src = edge[0];
                src_stride = sizeof edge[0];
            }
            vi x4[4];
            transpose_rows(x4, src, src_stride);
            for (size_t i = 0; i < 4 && q + i < quads; i++)
                store_quad(to + (q + i) * quad_bytes, x4[i]);
        }
    }
}
