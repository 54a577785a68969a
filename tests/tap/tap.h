/*
 * tap.h - the test harness: Test Anything Protocol on standard output.
 *
 * One line is one sentence of promised behaviour.  A failing line is followed by what was found
 * and what was expected.  Every check returns whether it passed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_TAP_H
#define FT_TESTS_TAP_H

#include <stdbool.h>
#include <stddef.h>

/* How many checks will follow; or call done_testing() at the end instead. */
void plan(int checks);

bool ok(bool passed, const char *sentence, ...) __attribute__((format(printf, 2, 3)));
bool is_int(long long found, long long expected, const char *sentence, ...)
    __attribute__((format(printf, 3, 4)));
bool is_str(const char *found, const char *expected, const char *sentence, ...)
    __attribute__((format(printf, 3, 4)));

/* |found - expected| <= tolerance; NaN never passes. */
bool near(double found, double expected, double tolerance, const char *sentence, ...)
    __attribute__((format(printf, 4, 5)));

/* `text` contains `part`: for error messages. */
bool has(const char *text, const char *part, const char *sentence, ...)
    __attribute__((format(printf, 3, 4)));

/* Count `checks` checks as skipped, for a reason that the reader can act on. */
void skip(int checks, const char *reason, ...) __attribute__((format(printf, 2, 3)));

/* Leave the whole program as skipped. */
_Noreturn void skip_all(const char *reason, ...) __attribute__((format(printf, 1, 2)));

/* A comment line. */
void diag(const char *text, ...) __attribute__((format(printf, 1, 2)));

/* Stop at once: the test itself cannot go on. */
_Noreturn void bail_out(const char *reason, ...) __attribute__((format(printf, 1, 2)));

/* Print the plan if none was given; return what main() returns: 0 when all passed. */
int done_testing(void);

#endif
