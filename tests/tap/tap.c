/*
 * tap.c - prints TAP; no function here turns a failure into a success.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int planned, run, failed;

__attribute__((format(printf, 2, 0))) static bool verdict(bool passed, const char *sentence,
                                                          va_list args)
{
    printf("%sok %d - ", passed ? "" : "not ", ++run);
    vprintf(sentence, args);
    putchar('\n');
    failed += !passed;
    fflush(stdout);
    return passed;
}

/* Expands to the verdict of `passed` with the sentence and its arguments. */
#define VERDICT(passed)                                                                            \
    bool fine = (passed);                                                                          \
    va_list args;                                                                                  \
    va_start(args, sentence);                                                                      \
    verdict(fine, sentence, args);                                                                 \
    va_end(args)

void plan(int checks)
{
    planned = checks;
    printf("1..%d\n", checks);
}

bool ok(bool passed, const char *sentence, ...)
{
    VERDICT(passed);
    return fine;
}

bool is_int(long long found, long long expected, const char *sentence, ...)
{
    VERDICT(found == expected);
    if (!fine)
        diag("found %lld, expected %lld", found, expected);
    return fine;
}

bool is_str(const char *found, const char *expected, const char *sentence, ...)
{
    VERDICT(found != NULL && expected != NULL && strcmp(found, expected) == 0);
    if (!fine)
        diag("found \"%s\", expected \"%s\"", found ? found : "(null)",
             expected ? expected : "(null)");
    return fine;
}

bool near(double found, double expected, double tolerance, const char *sentence, ...)
{
    VERDICT(fabs(found - expected) <= tolerance);
    if (!fine)
        diag("found %.9g, expected %.9g, tolerance %.3g", found, expected, tolerance);
    return fine;
}

bool has(const char *text, const char *part, const char *sentence, ...)
{
    VERDICT(text != NULL && strstr(text, part) != NULL);
    if (!fine)
        diag("\"%s\" does not contain \"%s\"", text ? text : "(null)", part);
    return fine;
}

void skip(int checks, const char *reason, ...)
{
    va_list args;
    for (int i = 0; i < checks; i++) {
        printf("ok %d # SKIP ", ++run);
        va_start(args, reason);
        vprintf(reason, args);
        va_end(args);
        putchar('\n');
    }
}

bool emulated(void)
{
    return getenv("FT_EMULATED") != NULL;
}

void skip_all(const char *reason, ...)
{
    va_list args;
    va_start(args, reason);
    printf("1..0 # SKIP ");
    vprintf(reason, args);
    putchar('\n');
    va_end(args);
    exit(0);
}

void diag(const char *text, ...)
{
    va_list args;
    va_start(args, text);
    printf("# ");
    vprintf(text, args);
    putchar('\n');
    va_end(args);
    fflush(stdout);
}

void bail_out(const char *reason, ...)
{
    va_list args;
    va_start(args, reason);
    printf("Bail out! ");
    vprintf(reason, args);
    putchar('\n');
    va_end(args);
    exit(255);
}

int done_testing(void)
{
    if (planned == 0)
        plan(run);
    if (planned != run)
        diag("planned %d checks, ran %d", planned, run);
    return failed == 0 && planned == run && run > 0 ? 0 : 1;
}
