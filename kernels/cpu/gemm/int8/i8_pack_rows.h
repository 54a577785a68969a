/*
 * i8_pack_rows.h - packs a row-major matrix into a panel, PACK_ROWS rows at a time.
 *
 * Included once by the file of each instruction set.  The including file defines:
 *
 *   packed_vector(panel, row, rows, k, &quad_bytes)  where those rows have their first quad, and
 *                                                    the bytes to the next one
 *   transpose_rows(quads, from, stride)              four packed_quads, from rows of 16 bytes
 *   store_quads(to, quad_bytes, q, quads, count)     stores quads from quad q on, a multiple of 4
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static void pack_rows(void *panel, const int8_t *from, size_t stride, size_t rows, size_t k)
{
    size_t quads = (k + 3) / 4;
    for (size_t row = 0; row < rows; row += PACK_ROWS) {
        size_t quad_bytes, n_rows = rows - row < PACK_ROWS ? rows - row : PACK_ROWS;
        char *to = packed_vector(panel, row, rows, k, &quad_bytes);
        for (size_t q = 0; q < quads; q += 4) {
            const int8_t *src = from + row * stride + q * 4;
            size_t src_stride = stride, width = k - q * 4 < 16 ? k - q * 4 : 16;
            int8_t edge[PACK_ROWS][16] = { 0 };
            if (n_rows < PACK_ROWS || width < 16) {
                for (size_t i = 0; i < n_rows; i++)
                    memcpy(edge[i], src + i * stride, width);
                src = edge[0];
                src_stride = sizeof edge[0];
            }
            packed_quad x4[4];
            transpose_rows(x4, src, src_stride);
            store_quads(to, quad_bytes, q, x4, ft_min_size(quads - q, 4));
        }
    }
}
