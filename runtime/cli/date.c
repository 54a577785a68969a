/*
 * date.c - dates of command lines.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/cli/date.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

/* Local time of a calendar date; false if the calendar has no such date. */
static bool to_seconds(const struct tm *given, int64_t *out)
{
    struct tm tm = *given;
    tm.tm_isdst = -1;
    errno = 0;
    time_t seconds = mktime(&tm);
    bool exists = tm.tm_mday == given->tm_mday && tm.tm_mon == given->tm_mon && errno == 0;
    *out = (int64_t) seconds;
    return exists && seconds != 0;
}

bool ft_date_parse(const char *text, int64_t *out)
{
    static const char *const forms[] = { "%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S" };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct tm tm = { 0 };
        const char *end = strptime(text, forms[i], &tm);
        if (end != NULL && *end == '\0')
            return to_seconds(&tm, out);
    }
    return false;
}

bool ft_date_of_environment(int64_t *out)
{
    const char *text = getenv("SOURCE_DATE_EPOCH");
    char *end;
    *out = 0;
    if (text == NULL)
        return true;
    errno = 0;
    long long seconds = strtoll(text, &end, 10);
    time_t time = (time_t) seconds;
    struct tm tm;
    return errno == 0 && end > text && *end == '\0' && gmtime_r(&time, &tm) != NULL &&
           to_seconds(&tm, out);
}
