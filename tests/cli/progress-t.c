/*
 * progress-t.c - the text of a progress line.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/cli/progress.h"
#include "tests/tap/tap.h"

static const struct {
    const char *unit;
    uint64_t done, total;
    double seconds;
    const char *expected;
} lines[] = {
    { "rows", 64, 200, 4.0, "judging: 64 of 200 rows, 16.0/s, 8 s left" },
    { "rows", 200, 200, 4.0, "judging: 200 of 200 rows, 50.0/s, 0 s left" },
    { "rows", 1, 100, 1.0, "judging: 1 of 100 rows, 1.0/s, 99 s left" },
    { "rows", 1, 101, 1.0, "judging: 1 of 101 rows, 1.0/s, 2 min left" },
    { "rows", 1, 7501, 1.0, "judging: 1 of 7501 rows, 1.0/s, 2 h 05 min left" },
    { "rows", 1, 7201, 1.0, "judging: 1 of 7201 rows, 1.0/s, 2 h 00 min left" },
    { NULL, 5000000, 10000000, 2.0, "judging: 5 of 10 MB, 2.5/s, 2 s left" },
};

int main(void)
{
    char text[FT_PROGRESS_TEXT_SIZE];
    for (size_t i = 0; i < FT_COUNT(lines); i++) {
        const ft_progress_line line = { .label = "judging", .unit = lines[i].unit };
        ft_progress_format(text, &line, lines[i].done, lines[i].total, lines[i].seconds);
        is_str(text, lines[i].expected, "a progress line shows the rate and the remaining time");
    }
    return done_testing();
}
