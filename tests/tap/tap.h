/*
 * tap.h - the test harness: Test Anything Protocol on standard output.
 *
 * Each line is one complete sentence about expected behaviour.  A failing line is followed by the
 * value found and the value expected.  Every check returns whether it passed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_TAP_H
#define FT_TESTS_TAP_H

#include <stdbool.h>
#include <stddef.h>

/* Announces the number of checks; alternatively, call done_testing() at the end. */
void plan(int checks);

bool ok(bool passed, const char *sentence, ...) __attribute__((format(printf, 2, 3)));
bool is_int(long long found, long long expected, const char *sentence, ...)
    __attribute__((format(printf, 3, 4)));
bool is_str(const char *found, const char *expected, const char *sentence, ...)
    __attribute__((format(printf, 3, 4)));

/* |found - expected| <= tolerance; fails for NaN. */
bool near(double found, double expected, double tolerance, const char *sentence, ...)
    __attribute__((format(printf, 4, 5)));

/* `text` contains `part`, as for error messages. */
bool has(const char *text, const char *part, const char *sentence, ...)
    __attribute__((format(printf, 3, 4)));

/* Counts `checks` checks as skipped; the reason tells the reader what to do. */
void skip(int checks, const char *reason, ...) __attribute__((format(printf, 2, 3)));

/* Skips the whole program. */
_Noreturn void skip_all(const char *reason, ...) __attribute__((format(printf, 1, 2)));

/* Whether the program runs under qemu-user, as FT_EMULATED says: some of the system is not there.
 */
bool emulated(void);

/* Prints a comment line. */
void diag(const char *text, ...) __attribute__((format(printf, 1, 2)));

/* Stops at once because the test itself cannot continue. */
_Noreturn void bail_out(const char *reason, ...) __attribute__((format(printf, 1, 2)));

/* Prints the plan if none was given; returns the value for main(): 0 if all checks passed. */
int done_testing(void);

#endif
