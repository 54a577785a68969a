/*
 * amx_emulator.h - the AMX instructions of i8_amx.c in plain C, for processors without them.
 *
 * Include it before the source that uses them.  Each thread has tiles of its own.  What faults on a
 * processor sets amx_faulted: an instruction on a tile without rows or columns, or before
 * LDTILECFG.
 *
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18, and
 * volume 2, LDTILECFG, TDPBSUD, TILELOADD, TILERELEASE, TILESTORED, TILEZERO.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_AMX_EMULATOR_H
#define FT_TESTS_LIB_AMX_EMULATOR_H

#include <immintrin.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { AMX_TILES = 8, AMX_ROWS = 16, AMX_BYTES = 64 };

typedef struct amx_tile {
    uint8_t byte[AMX_ROWS][AMX_BYTES];
    int rows, bytes;
} amx_tile;

static _Thread_local amx_tile amx_tiles[AMX_TILES];
static atomic_bool amx_faulted;

static void amx_check(bool valid)
{
    if (!valid)
        amx_faulted = true;
}

static amx_tile *amx_at(int index)
{
    amx_tile *tile = &amx_tiles[index];
    amx_check(tile->rows > 0 && tile->bytes > 0);
    return tile;
}

/* The 64 bytes: palette, start row, 14 reserved, 16 numbers of bytes, 16 numbers of rows. */
static void amx_configure(const void *from)
{
    const uint8_t *config = from;
    amx_check(config[0] == 1 && config[1] == 0);
    memset(amx_tiles, 0, sizeof amx_tiles);
    for (int i = 0; i < AMX_TILES; i++) {
        amx_tile *tile = &amx_tiles[i];
        tile->bytes = config[16 + 2 * i] + 256 * config[17 + 2 * i];
        tile->rows = config[48 + i];
        amx_check(tile->rows <= AMX_ROWS && tile->bytes <= AMX_BYTES &&
                  (tile->rows > 0) == (tile->bytes > 0));
    }
}

static void amx_release(void)
{
    memset(amx_tiles, 0, sizeof amx_tiles);
}

static void amx_zero(int index)
{
    amx_tile *tile = amx_at(index);
    memset(tile->byte, 0, sizeof tile->byte);
}

static void amx_load(int index, const void *from, size_t stride)
{
    amx_tile *tile = amx_at(index);
    memset(tile->byte, 0, sizeof tile->byte);
    for (int row = 0; row < tile->rows; row++)
        memcpy(tile->byte[row], (const char *) from + (size_t) row * stride, (size_t) tile->bytes);
}

static void amx_store(int index, void *to, size_t stride)
{
    const amx_tile *tile = amx_at(index);
    for (int row = 0; row < tile->rows; row++)
        memcpy((char *) to + (size_t) row * stride, tile->byte[row], (size_t) tile->bytes);
}

/* acc [m, n] of int32 += a [m, k] of int8 times b [k / 4, n, 4] of uint8. */
static void amx_dot(int acc_index, int a_index, int b_index)
{
    amx_tile *acc = amx_at(acc_index);
    const amx_tile *a = amx_at(a_index), *b = amx_at(b_index);
    amx_check(acc->rows == a->rows && acc->bytes == b->bytes && a->bytes == 4 * b->rows);
    for (int m = 0; m < acc->rows; m++)
        for (int n = 0; n < acc->bytes / 4; n++) {
            int32_t sum;
            memcpy(&sum, &acc->byte[m][4 * n], sizeof sum);
            for (int k = 0; k < a->bytes; k++)
                sum += (int8_t) a->byte[m][k] * b->byte[k / 4][4 * n + k % 4];
            memcpy(&acc->byte[m][4 * n], &sum, sizeof sum);
        }
}

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbsud
#define _tile_loadconfig(from) amx_configure(from)
#define _tile_release() amx_release()
#define _tile_zero(tile) amx_zero(tile)
#define _tile_loadd(tile, from, stride) amx_load(tile, from, stride)
#define _tile_stored(tile, to, stride) amx_store(tile, to, stride)
#define _tile_dpbsud(acc, a, b) amx_dot(acc, a, b)

#endif
