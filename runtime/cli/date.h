/*
 * date.h - the date that a tool renders: given, reproducible, or now.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CLI_DATE_H
#define FT_RUNTIME_CLI_DATE_H

#include <stdbool.h>
#include <stdint.h>

/* Read YYYY-MM-DD, or with THH:MM or THH:MM:SS behind it, as local time; seconds since 1970. */
bool ft_date_parse(const char *text, int64_t *out);

/*
 * The date of SOURCE_DATE_EPOCH, whose digits in UTC become local time, so that texts do not depend
 * on the time zone; 0, which means now, if it is not set.  False: it is not a number of seconds.
 */
bool ft_date_of_environment(int64_t *out);

#endif
