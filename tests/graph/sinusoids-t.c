/*
 * sinusoids-t.c - sinusoidal position tables, compared with those of transformers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/graph/sinusoids.h"
#include "tests/lib/golden.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static long long whole(const json_t *json, const char *key)
{
    return json_integer_value(json_object_get(json, key));
}

/* The configuration of one line of sinusoids.json. */
static ft_config config_of(const json_t *line)
{
    ft_config config = { .hidden = (int32_t) whole(line, "columns"),
                         .positions = (int32_t) whole(line, "rows"),
                         .padding_id = (int32_t) whole(line, "padding") };
    if (!ft_sinusoids_parse(json_string_value(json_object_get(line, "kind")), &config.sinusoids))
        bail_out("sinusoids.json: no kind");
    return config;
}

static float *table_of(const ft_config *config)
{
    size_t count = (size_t) config->positions * (size_t) config->hidden;
    float *table = malloc((count + 1) * sizeof *table);
    if (table == NULL)
        bail_out("no memory");
    memset(table, 0xff, (count + 1) * sizeof *table);
    ft_sinusoids_write(table, config);
    if (!isnan(table[count]))
        bail_out("a table is longer than itself");
    return table;
}

/* Distance in ulps of numbers from 1/2 to 1, the largest ulp of the table: 2^-24. */
static double units(float found, double expected)
{
    return fabs((double) found - (double) (float) expected) * 0x1p24;
}

/*
 * Marian tables are bit-identical: both sides compute in double and round once.  For M2M100 tables
 * the steps are the same, but torch's exponential and sine are up to one unit off the rounded
 * value: the difference is one unit, plus position * 2^-23 where the frequency is off.  So only a
 * few values of a table (1 in 79 observed) differ by more than one unit, and none exceeds that
 * bound.
 */
static void test_line(const json_t *line)
{
    ft_config config = config_of(line);
    float *table = table_of(&config);
    int far = 0, wrong = 0, all = 0;
    size_t row, i;
    json_t *values, *value;
    json_array_foreach(json_object_get(line, "values"), row, values)
    {
        long long position =
            json_integer_value(json_array_get(json_object_get(line, "positions"), row));
        wrong += json_array_size(values) != (size_t) config.hidden;
        json_array_foreach(values, i, value)
        {
            double off =
                units(table[position * config.hidden + (long long) i], json_number_value(value));
            all++;
            far += off > (config.sinusoids == FT_SINUSOIDS_MARIAN ? 0.0 : 1.0);
            wrong += !(off <= 1.0 + 2.0 * (double) position);
        }
    }
    ok(wrong == 0 && far <= (config.sinusoids == FT_SINUSOIDS_MARIAN ? 0 : all / 50),
       "%s, %d columns, %d rows: the table matches transformers, with %d of %d values off by more "
       "than 2^-24",
       ft_sinusoids_name(config.sinusoids), config.hidden, config.positions, far, all);
    free(table);
}

static void test_exact(void)
{
    ft_config config = {
        .hidden = 32, .positions = 90, .padding_id = 7, .sinusoids = FT_SINUSOIDS_M2M100
    };
    float *closed = table_of(&config), row[32 * 3];
    int wrong = 0;
    for (int i = 0; i < 32; i++)
        wrong += closed[i] != (i < 16 ? 0.0f : 1.0f) || closed[7 * 32 + i] != 0.0f;
    is_int(wrong, 0, "position 0 has the angle 0 and the padding row is zero");
    ok(closed[32] == (float) sin(1.0) && fabs((double) closed[32 + 15] - 1e-4) < 1e-10,
       "frequencies of M2M100 tables range from 1 to 1/10000");
    ft_sinusoids_write_rows(row, &config, 6, 3);
    ok(memcmp(row, closed + 6 * 32, sizeof row) == 0,
       "ft_sinusoids_write_rows() writes the rows of the whole table");

    config.padding_id = -1;
    config.sinusoids = FT_SINUSOIDS_MARIAN;
    float *open = table_of(&config);
    ok(open[32 + 8] == (float) sin(0.01) &&
           open[7 * 32 + 31] == (float) cos(7.0 / pow(1e4, 0.9375)),
       "frequencies of Marian tables stay above 1/10000 and no row is zero");
    free(open);
    free(closed);
}

int main(void)
{
    json_t *lines = golden_json("sinusoids.json"), *line;
    size_t i;
    json_array_foreach(lines, i, line) test_line(line);
    json_decref(lines);
    test_exact();
    return done_testing();
}
