/*
 * byte_range.h - a range of bytes of a text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_ALIGNED_BYTE_RANGE_H
#define FT_RUNTIME_TEXT_ALIGNED_BYTE_RANGE_H

#include <stdint.h>

/* Bytes [start, end). */
typedef struct ft_byte_range {
    uint32_t start, end;
} ft_byte_range;

#endif
