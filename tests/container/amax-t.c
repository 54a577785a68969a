/*
 * amax-t.c - the calibration table amax.tsv, and FasterTransformer's amaxList.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/half.h"
#include "runtime/container/amax.h"
#include "runtime/mem.h"
#include "tests/lib/folder.h"
#include "tests/tap/tap.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD "name\tamax\tmethod\tclipped\tsqnr\n"
#define GOOD "a\t1.5\tmax\t0\t40.5\n"

static ft_status parse(const char *text, size_t bytes, ft_error *err)
{
    ft_amax_table *list;
    ft_status rc = ft_amax_table_parse(&list, "amax.tsv", text, bytes, err);
    ft_amax_table_free(list);
    return rc;
}

/* ---- The table ----------------------------------------------------------------------------- */

/* Amax values of every magnitude, from the smallest that has a scale to the largest float. */
static float sample(size_t i)
{
    uint32_t bits = ft_bits_from_float(FLT_MIN * 128.0f) + (uint32_t) (i * 1970773u);
    return bits < 0x7f800000u ? ft_float_from_bits(bits) : FLT_MAX;
}

static void test_round_trip(void)
{
    enum { COUNT = 1000 };
    ft_amax_table *list = ft_amax_table_new(), *back;
    ft_error err;
    char name[32], *text, *again;
    int failures = 0, different = 0;
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "layer.%zu.x", (i * 7919) % COUNT); /* unsorted */
        const ft_amax_entry e = { name, sample(i), "percentile", (double) i / COUNT,
                                  0.1 * (double) i };
        failures += ft_amax_table_add(list, &e, &err) != FT_OK;
    }
    is_int(failures, 0, "ft_amax_table_add accepts a thousand activation points");
    size_t bytes, bytes_again;
    is_int(ft_amax_table_format(list, &text, &bytes, &err), FT_OK, "a table is formatted as text");
    is_int(ft_amax_table_parse(&back, "amax.tsv", text, bytes, &err), FT_OK,
           "the text of a table is parsed");
    for (size_t i = 0; back != NULL && i < COUNT; i++) {
        const ft_amax_entry *e = ft_amax_table_find(back, list->entry[i].name);
        different += e == NULL || e->amax != list->entry[i].amax || strcmp(e->method, "percentile");
    }
    is_int(different, 0, "every amax is unchanged by a round trip, found by name");
    is_int(ft_amax_table_format(back, &again, &bytes_again, &err), FT_OK,
           "a parsed table is formatted as text");
    ok(bytes == bytes_again && memcmp(text, again, bytes) == 0,
       "formatting a parsed table gives the same text");
    ok(ft_amax_table_find(back, "layer.x") == NULL,
       "ft_amax_table_find does not find a name that is absent");
    free(text);
    free(again);
    ft_amax_table_free(list);
    ft_amax_table_free(back);
}

static void test_infinite_sqnr(void)
{
    static const char noiseless[] = HEAD "a\t1\tmax\t0\tinf\n";
    ft_error err;
    is_int(parse(noiseless, strlen(noiseless), &err), FT_OK, "an infinite SQNR is accepted");
    is_int(parse(HEAD, strlen(HEAD), &err), FT_OK, "a table without rows is accepted");
}

/* Use a locale with a decimal comma, compiled in `folder`. */
static bool use_comma(const char *folder)
{
    char command[512];
    snprintf(command, sizeof command,
             "cd %s && printf 'LC_NUMERIC\\ndecimal_point \",\"\\nthousands_sep \"\"\\n"
             "grouping -1\\nEND LC_NUMERIC\\n' >comma.src && "
             "localedef -c -f ANSI_X3.4-1968 -i comma.src ./comma >log 2>&1; test -d comma",
             folder);
    return system(command) == 0 && setenv("LOCPATH", folder, 1) == 0 &&
           setlocale(LC_NUMERIC, "comma") != NULL;
}

/* The decimal point of the program's locale must not affect the file. */
static void test_locale(void)
{
    char folder[FOLDER_PATH], command[FOLDER_PATH + 8];
    folder_make(folder);
    bool has_comma = use_comma(folder);
    snprintf(command, sizeof command, "rm -r %s", folder);
    if (system(command) != 0)
        diag("cannot remove %s", folder);
    if (!has_comma) {
        skip(2, "localedef cannot compile a locale with a decimal comma");
        return;
    }
    is_str(localeconv()->decimal_point, ",", "the test locale has a decimal comma");
    ft_amax_table *list;
    ft_error err;
    is_int(ft_amax_table_parse(&list, "amax.tsv", HEAD GOOD, strlen(HEAD GOOD), &err), FT_OK,
           "reading amax.tsv ignores the decimal comma of the locale");
    char *text;
    size_t bytes;
    if (list == NULL || ft_amax_table_format(list, &text, &bytes, &err) != FT_OK)
        bail_out("%s", err.text);
    is_str(text, HEAD GOOD, "writing amax.tsv ignores the decimal comma of the locale");
    free(text);
    ft_amax_table_free(list);
    setlocale(LC_NUMERIC, "C");
}

/* ---- Refusals ----------------------------------------------------------------------------- */

static const struct {
    const char *lines, *reason, *sentence;
} refused[] = {
    { GOOD "b\t\tmax\t0\t40\n", "line 3: b: amax \"\" is not a number", "a missing amax" },
    { GOOD "b\t0\tmax\t0\t40\n", "line 3: b: amax 0, expected a positive", "a zero amax" },
    { GOOD "b\t-1\tmax\t0\t40\n", "line 3: b: amax -1, expected a positive", "a negative amax" },
    { GOOD "b\tnan\tmax\t0\t40\n", "line 3: b: amax nan, expected a positive", "a NaN amax" },
    { GOOD "b\tinf\tmax\t0\t40\n", "line 3: b: amax inf, expected a positive", "an infinite amax" },
    { GOOD "b\t1e39\tmax\t0\t40\n", "line 3: b: amax inf", "an amax beyond float" },
    { GOOD "b\t1e-40\tmax\t0\t40\n", "too small for a scale", "an amax whose scale underflows" },
    { GOOD "b\t1 \tmax\t0\t40\n", "line 3: b: amax \"1 \" is not a number",
      "space after a number" },
    { GOOD "b\t 1\tmax\t0\t40\n", "line 3: b: amax \" 1\" is not a number",
      "space before a number" },
    { GOOD "b\t1,5\tmax\t0\t40\n", "line 3: b: amax \"1,5\" is not a number", "a decimal comma" },
    { GOOD GOOD, "line 3: a: has two amax", "a duplicate name" },
    { GOOD "b\t1\tmax\t0\n", "line 3: expected 5 columns", "a missing column" },
    { GOOD "b\t1\tmax\t0\t40\t\n", "line 3: expected 5 columns", "a sixth column" },
    { GOOD "\n", "line 3: expected 5 columns", "an empty line" },
    { GOOD "\t1\tmax\t0\t40\n", "line 3: \"\" is not a valid name", "an empty name" },
    { GOOD "b c\t1\tmax\t0\t40\n", "line 3: \"b c\" is not a valid name", "a name with a space" },
    { GOOD "b\t1\t\t0\t40\n", "line 3: b: no valid name of a method", "an empty method" },
    { GOOD "b\t1\tamethodoftwentyfourletter\t0\t40\n", "too long", "a method of 25 characters" },
    { GOOD "b\t1\tmax\t1.5\t40\n", "clipped fraction 1.5, expected 0 to 1", "a fraction above 1" },
    { GOOD "b\t1\tmax\tnan\t40\n", "clipped fraction nan", "a NaN fraction" },
    { GOOD "b\t1\tmax\t0\tnan\n", "SQNR is not a number", "a NaN SQNR" },
    { GOOD "b\t1\tmax\t0\tx\n", "SQNR \"x\" is not a number", "an SQNR that is a word" },
    { GOOD "b\t1\tmax\t0\t40", "line 3: truncated: no end of line",
      "a last line without a line feed" },
};

static void test_refusals(void)
{
    ft_error err;
    for (size_t i = 0; i < FT_COUNT(refused); i++) {
        char text[512];
        int bytes = snprintf(text, sizeof text, HEAD "%s", refused[i].lines);
        ok(parse(text, (size_t) bytes, &err) == FT_EFORMAT && strstr(err.text, refused[i].reason),
           "%s is refused: %s", refused[i].sentence, err.text);
    }
    is_int(parse("", 0, &err), FT_EFORMAT, "an empty file is refused");
    is_int(parse(GOOD, strlen(GOOD), &err), FT_EFORMAT,
           "a file without the header line is refused");
    has(err.text, "amax.tsv: line 1: expected the columns",
        "the error of a missing header line names the expected columns");
    static const char zero[] = HEAD "a\t1\tm\0x\t0\t40\n";
    is_int(parse(zero, sizeof zero - 1, &err), FT_EFORMAT, "a file with a NUL byte is refused");
    char longest[2000];
    memset(longest, 'a', sizeof longest);
    memcpy(longest, HEAD, strlen(HEAD));
    longest[sizeof longest - 1] = '\n';
    is_int(parse(longest, sizeof longest, &err), FT_EFORMAT, "a line that is too long is refused");
    has(err.text, "at most 511", "the error of a line that is too long names the limit");
}

/* ---- amaxList ----------------------------------------------------------------------------- */

static void test_amax_list(void)
{
    enum { H = 8 };
    float weights[9 * H], list[FT_AMAX_LIST_HEADER + 9 * H];
    for (int i = 0; i < 9 * H; i++)
        weights[i] = 100.0f + (float) i;
    ft_amax_layer layer = { .hidden = H, .ffn = 4 * H };
    for (int i = 0; i < FT_AMAX_LIST_ACTIVATIONS; i++)
        layer.activation[i] = i == FT_AMAX_LIST_V ? 0.0f : 0.3f * (float) (i + 1);
    for (int i = 0, at = 0; i < FT_AMAX_LIST_WEIGHTS; i++) {
        layer.weight[i] = weights + at;
        at += i == FT_AMAX_LIST_UP ? 4 * H : H;
    }
    is_int((long long) ft_amax_list_size(768), 6992,
           "the amaxList of a layer with hidden size 768 has 6992 floats");
    is_int(ft_amax_list_write_layer(list, &layer, NULL), FT_OK,
           "ft_amax_list_write_layer writes the amaxList of a layer with ffn = 4H");

    /* The expected bits are computed with exact rational arithmetic, rounded once. */
    is_int(ft_bits_from_float(list[28]), 0x4019999a, "amaxList[28] is the amax after GELU");
    is_int(ft_bits_from_float(list[29]), 0x3c9acf38, "amaxList[29] is amax / 127");
    is_int(ft_bits_from_float(list[30]), 0x391c0747, "amaxList[30] is amax / 127 / 127");
    is_int(ft_bits_from_float(list[31]), 0x4253aaaa, "amaxList[31] is 127 / amax");
    int wrong = 0;
    for (int i = 0; i < 4; i++)
        wrong += list[4 * FT_AMAX_LIST_V + i] != 0.0f;
    is_int(wrong, 0, "amaxList[12] to amaxList[15] are 0 for an amax of 0");
    for (int i = 36; i < FT_AMAX_LIST_HEADER; i++)
        wrong += list[i] != 0.0f;
    is_int(wrong, 0, "amaxList[36] to amaxList[79] are 0");
    for (int i = 0; i < 9 * H; i++)
        wrong += list[FT_AMAX_LIST_HEADER + i] != weights[i];
    is_int(wrong, 0,
           "amaxList[80] and later are the per-channel amax of q, k, v, output, up (4H) and down");

    layer.ffn = 3 * H;
    is_int(ft_amax_list_write_layer(list, &layer, NULL), FT_EUNSUPPORTED,
           "ft_amax_list_write_layer refuses ffn = 3H");
    layer.ffn = 4 * H + 1;
    is_int(ft_amax_list_write_layer(list, &layer, NULL), FT_EUNSUPPORTED,
           "ft_amax_list_write_layer refuses ffn = 4H + 1");

    char text[FT_AMAX_LIST_DESCRIPTION_SIZE];
    is_str(ft_amax_list_describe(text, H, 7), "q after bias: 127 / amax",
           "ft_amax_list_describe names entry 7");
    is_str(ft_amax_list_describe(text, H, 79), "reserved",
           "ft_amax_list_describe calls entry 79 reserved");
    is_str(ft_amax_list_describe(text, H, 80 + 4 * H), "feed-forward up weight amax, channel 0",
           "entry 80 + 4H is the first channel of the up weight");
    is_str(ft_amax_list_describe(text, H, 80 + 8 * H + 1),
           "feed-forward down weight amax, channel 1",
           "entry 80 + 8H + 1 is the second channel of the down weight");
}

int main(void)
{
    test_round_trip();
    test_infinite_sqnr();
    test_locale();
    test_refusals();
    test_amax_list();
    return done_testing();
}
