/*
 * scripts.c - find the run of a character by binary search.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/unicode/scripts.h"

#include "runtime/mem.h"

#include <stddef.h>

/* From `first` on, until the next run begins, all characters have this script. */
typedef struct {
    uint32_t first;
    int script;
} script_run;

static const script_run runs[] = {
#include "runtime/text/unicode/scripts.def"
};

int ft_char_script(uint32_t c)
{
    size_t low = 0, high = FT_COUNT(runs); /* the run is in [low, high) */
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (runs[middle].first <= c)
            low = middle;
        else
            high = middle;
    }
    return runs[low].script;
}
