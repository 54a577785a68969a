/*
 * score_number.c - digits as an integer, times a power of ten.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/tables/score_number.h"

#include "runtime/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_EXPONENT = 100000, MAX_POWER = 308 };

/* A number in the text that ends before `end`. */
typedef struct {
    const unsigned char *at, *end;
    uint64_t digits;  /* of the number, as far as they fit */
    int32_t exponent; /* of ten */
} number_reader;

static bool is_digit(const number_reader *r)
{
    return r->at < r->end && *r->at >= '0' && *r->at <= '9';
}

static bool accept(number_reader *r, unsigned char c)
{
    bool found = r->at < r->end && *r->at == c;
    r->at += found;
    return found;
}

/* Append the next digit; false, and changes nothing, if it does not fit. */
static bool append_digit(number_reader *r)
{
    uint64_t digits;
    if (__builtin_mul_overflow(r->digits, 10, &digits) ||
        __builtin_add_overflow(digits, (uint64_t) (*r->at - '0'), &digits))
        return false;
    r->digits = digits;
    return true;
}

/* No leading zeros. Digits that do not fit only raise the exponent. */
static bool read_integer(number_reader *r)
{
    bool fits = true;
    if (accept(r, '0'))
        return !is_digit(r);
    if (!is_digit(r))
        return false;
    for (; is_digit(r); r->at++) {
        fits = fits && append_digit(r);
        r->exponent += !fits && r->exponent < MAX_EXPONENT;
    }
    return true;
}

/* Digits that do not fit are ignored. */
static bool read_fraction(number_reader *r)
{
    bool fits = true;
    if (!is_digit(r))
        return false;
    for (; is_digit(r); r->at++) {
        fits = fits && append_digit(r);
        r->exponent -= fits;
    }
    return true;
}

static bool read_exponent(number_reader *r)
{
    bool negative = accept(r, '-');
    int32_t value = 0;
    if (!negative)
        accept(r, '+');
    if (!is_digit(r))
        return false;
    for (; is_digit(r); r->at++)
        value = value < MAX_EXPONENT ? 10 * value + (*r->at - '0') : value;
    r->exponent += negative ? -value : value;
    return true;
}

/* 10^n, correctly rounded. */
static double power_of_ten(int32_t n)
{
    static const double exact[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    char text[16];
    if ((size_t) n < FT_COUNT(exact))
        return exact[n];
    snprintf(text, sizeof text, "1e%d", (int) n); /* no decimal point, which locales change */
    return strtod(text, NULL);
}

static double value_of(const number_reader *r)
{
    double value = (double) r->digits;
    int32_t exponent = r->exponent;
    for (; exponent < -MAX_POWER && value != 0; exponent += MAX_POWER)
        value /= power_of_ten(MAX_POWER);
    if (value == 0)
        return 0;
    if (exponent > MAX_POWER)
        return (double) INFINITY;
    return exponent < 0 ? value / power_of_ten(-exponent) : value * power_of_ten(exponent);
}

ft_status ft_score_number_scan(ft_json_scanner *scan, double *number)
{
    number_reader r = { .at = scan->at, .end = scan->end };
    bool negative = accept(&r, '-');
    bool valid = read_integer(&r);
    if (valid && accept(&r, '.'))
        valid = read_fraction(&r);
    if (valid && (accept(&r, 'e') || accept(&r, 'E')))
        valid = read_exponent(&r);
    *number = negative ? -value_of(&r) : value_of(&r);
    if (!valid || !isfinite(*number))
        return ft_json_scan_fail_expected(scan, "a finite number or null");
    scan->at = r.at;
    return FT_OK;
}
