/*
 * times-t.c - budgets of time: the file of measured times, what units and matrices take, and the
 * plans that hand-made times lead to.
 *
 * The model is a tiny BERT without a head; ranges that clip two values of five make static scales
 * bad.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/calibrate.h"
#include "calibrate/times/op_times.h"
#include "calibrate/times/time_plan.h"
#include "calibrate/times/weight_times.h"
#include "runtime/mem.h"
#include "tests/lib/folder.h"
#include "tests/lib/models/calibrated.h"
#include "tests/tap/tap.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static ft_error err;
static calibrated files;
static ft_model *real;

static void must(ft_status status)
{
    if (status != FT_OK)
        bail_out("%s", err.text);
}

/* ---- Files --------------------------------------------------------------------------------- */

/* Two passes whose operations take half of their time. */
static const char good[] =
    "{\"device\": {\"name\": \"cpu\", \"detail\": \"avx2\"}, \"threads\": 3, \"scheme_times\": {"
    "\"format\": 1, \"group\": 32, \"passes\": ["
    "{\"scheme\": \"float\", \"pass\": \"forward\", \"sequences\": 2, \"length\": 8, \"us\": 40, "
    "\"count\": 5}, {\"scheme\": \"int8\", \"pass\": \"forward\", \"sequences\": 2, \"length\": 8, "
    "\"us\": 20.5, \"count\": 5}], \"ops\": ["
    "{\"scheme\": \"float\", \"kind\": \"norm\", \"name\": \"embed.norm\", \"us\": 2, \"count\": "
    "5}, {\"scheme\": \"float\", \"kind\": \"linear\", \"name\": \"up.weight\", \"us\": 18, "
    "\"count\": 5, \"rows\": 8, \"cols\": 4}, {\"scheme\": \"int8\", \"kind\": \"norm\", \"name\": "
    "\"embed.norm\", \"us\": 10.25, \"count\": 5}]}}";

static void test_file(void)
{
    ft_measured_times times;
    must(ft_measured_times_parse(&times, "good.json", good, strlen(good), &err));
    ok(times.ops == 3 && times.op[1].rows == 8 && times.op[1].cols == 4,
       "the file has three operations, and a linear has the shape of its weight");
    ok(times.op[0].us == 4.0 && times.op[1].us == 36.0 && times.op[2].us == 20.5,
       "times of operations are scaled so that they add up to the pass");
    ok(times.threads == 3 && strcmp(times.device, "cpu") == 0 && times.sequences == 2 &&
           times.length == 8 && times.group == 32,
       "the file says what was measured where");
    ok(times.pass_us[FT_TIMED_W4A16] == 0.0, "a scheme without a pass has no time");
    ft_measured_times_fini(&times);
}

/* The good file with one text replaced by another. */
typedef struct damage {
    const char *from, *to;
    ft_status status;
    const char *message;
} damage;

static const damage damages[] = {
    { "scheme_times", "times", FT_EFORMAT, "found no scheme_times" },
    { "\"format\": 1", "\"format\": 2", FT_EUNSUPPORTED, "format: found 2, expected 1" },
    { "\"group\": 32", "\"group\": -1", FT_EFORMAT, "scheme_times.group: found -1" },
    { "\"us\": 40", "\"us\": -40", FT_EFORMAT, "us: found -40, expected a number" },
    { "\"us\": 40", "\"us\": NaN", FT_EFORMAT, "not valid JSON" },
    { "\"us\": 40", "\"us\": 1e999", FT_EFORMAT, "not valid JSON" },
    { "\"us\": 40", "\"us\": 1e30", FT_EFORMAT, "expected a number from 0 to 1e+09" },
    { "\"us\": 40", "\"us\": 0", FT_EFORMAT, "expected a time above 0" },
    { "\"us\": 10.25", "\"us\": -0.5", FT_EFORMAT, "ops[2].us: found -0.5" },
    { "\"us\": 10.25", "\"us\": 0", FT_EFORMAT, "found no times of scheme int8" },
    { "\"us\": 10.25", "\"us\": \"10\"", FT_EFORMAT, "ops[2].us: found \"10\"" },
    { "\"rows\": 8", "\"rows\": 0", FT_EFORMAT, "rows: found 0" },
    { ", \"rows\": 8", "", FT_EFORMAT, "rows: " },
    { "{\"scheme\": \"int8\", \"kind\"", "{\"scheme\": \"w4a16\", \"kind\"", FT_EFORMAT,
      "expected a scheme that passes have" },
    { "{\"scheme\": \"int8\", \"kind\"", "{\"scheme\": \"int2\", \"kind\"", FT_EFORMAT,
      "found \"int2\", expected float, int8" },
    { "{\"scheme\": \"int8\", \"pass\"", "{\"scheme\": \"float\", \"pass\"", FT_EARG,
      "choose the shape of a pass with -b N" },
    { "\"sequences\": 2", "\"sequences\": 3", FT_EARG, "passes of several shapes" },
    { "\"device\"", "\"machine\"", FT_EFORMAT, "device: " },
    { "\"threads\": 3", "\"threads\": 0", FT_EFORMAT, "threads: found 0" },
    { "}]}}", "}]}", FT_EFORMAT, "not valid JSON" },
};

static void test_damages(void)
{
    for (size_t i = 0; i < FT_COUNT(damages); i++) {
        const damage *d = &damages[i];
        const char *at = strstr(good, d->from);
        char text[sizeof good + 32];
        ft_measured_times times;
        snprintf(text, sizeof text, "%.*s%s%s", (int) (at - good), good, d->to,
                 at + strlen(d->from));
        is_int(ft_measured_times_parse(&times, "bad.json", text, strlen(text), &err), d->status,
               "a file with <%s> instead of <%s> is refused", d->to, d->from);
        has(err.text, d->message, "the error says: %s", d->message);
        ft_measured_times_fini(&times);
    }
    ft_measured_times times;
    is_int(ft_measured_times_read(&times, "/nowhere/times.json", &err), FT_EIO,
           "a missing file is an error of reading");
    has(err.text, "/nowhere/times.json: cannot open", "the error names the missing file");
    ft_measured_times_fini(&times);
}

/* ---- Hand-made times ----------------------------------------------------------------------- */

enum { TEXT_BYTES = 1 << 16 };

typedef struct text {
    char data[TEXT_BYTES];
    size_t used;
} text;

static void add(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    t->used += (size_t) vsnprintf(t->data + t->used, sizeof t->data - t->used, format, args);
    va_end(args);
    if (t->used >= sizeof t->data)
        bail_out("the times do not fit");
}

/* Microseconds: matrices whose name has `fast` are faster in float than in any other scheme. */
static int time_of(const ft_op *op, ft_timed_scheme scheme, const char *fast)
{
    static const int linear[FT_TIMED_SCHEMES] = { 40, 10, 10, 25, 20, 15 };
    if (op->kind == FT_OP_ATTENTION)
        return scheme == FT_TIMED_INT8 ? 3 : 5;
    if (op->kind == FT_OP_NORM)
        return scheme == FT_TIMED_W8A8_DYNAMIC ? 2 : 1;
    if (op->kind != FT_OP_LINEAR)
        return 1;
    bool is_fast = strstr(real->weight[op->weight[0]].name, fast) != NULL;
    return scheme == FT_TIMED_FLOAT && is_fast ? 9 : linear[scheme];
}

static void add_op(text *t, const ft_op *op, ft_timed_scheme scheme, int us)
{
    const char *name = op->kind == FT_OP_LINEAR ? real->weight[op->weight[0]].name
                                                : real->graph.value[ft_op_label_value(op)].name;
    add(t, "%s{\"scheme\": \"%s\", \"kind\": \"%s\", \"name\": \"%s\", \"us\": %d, \"count\": 1",
        t->data[t->used - 1] == '[' ? "" : ", ", ft_timed_scheme_name(scheme), ft_op_name(op->kind),
        name, us);
    if (op->kind == FT_OP_LINEAR)
        add(t, ", \"rows\": %zu, \"cols\": %zu", real->weight[op->weight[0]].rows,
            real->weight[op->weight[0]].cols);
    add(t, "}");
}

/* The times of the model in all schemes. */
static const char *make_times(const char *fast)
{
    static text t;
    int sum[FT_TIMED_SCHEMES] = { 0 };
    t = (text){ .used = 0 };
    add(&t, "{\"device\": {\"name\": \"cpu\", \"detail\": \"-\"}, \"scheme_times\": {\"format\": "
            "1, \"group\": 0, \"ops\": [");
    for (int scheme = 0; scheme < FT_TIMED_SCHEMES; scheme++)
        for (int i = 0; i < real->graph.nop; i++) {
            const int us = time_of(&real->graph.op[i], (ft_timed_scheme) scheme, fast);
            sum[scheme] += us;
            add_op(&t, &real->graph.op[i], (ft_timed_scheme) scheme, us);
        }
    add(&t, "], \"passes\": [");
    for (int scheme = 0; scheme < FT_TIMED_SCHEMES; scheme++)
        add(&t,
            "%s{\"scheme\": \"%s\", \"pass\": \"forward\", \"sequences\": 1, \"length\": 8, "
            "\"us\": %d, \"count\": 1}",
            scheme > 0 ? ", " : "", ft_timed_scheme_name((ft_timed_scheme) scheme), sum[scheme]);
    add(&t, "]}}");
    return t.data;
}

static ft_measured_times parse_times(const char *fast)
{
    ft_measured_times times;
    const char *data = make_times(fast);
    must(ft_measured_times_parse(&times, "times.json", data, strlen(data), &err));
    return times;
}

/* ---- Units --------------------------------------------------------------------------------- */

static bool is_int8(const void *excluded, const char *weight)
{
    return excluded == NULL || strstr(weight, excluded) == NULL;
}

static void test_units(const ft_measured_times *times)
{
    ft_unit *unit;
    size_t units;
    ft_unit_times t;
    ft_precision precision[16] = { FT_PRECISION_STATIC };
    must(ft_units_find(&unit, &units, real, is_int8, NULL, &err));
    must(ft_unit_times_init(&t, times, real, unit, units, is_int8, NULL, &err));
    ok(t.unit[0][FT_PRECISION_STATIC] == 31000 && t.unit[0][FT_PRECISION_FLOAT] == 121000,
       "a unit takes the time of its three matrices and of the norm that quantizes it");
    is_int(t.unit[0][FT_PRECISION_PER_TOKEN], 32000, "scales per token take longer in the norm");
    ok(t.unit[1][FT_PRECISION_STATIC] == 3000 && t.unit[1][FT_PRECISION_PER_TOKEN] == 5000,
       "an attention takes the time of its operation, in int8 or in float");
    const int64_t all_static = ft_unit_times_of_plan(&t, precision);
    near(ft_ms_of_ns(all_static), times->pass_us[FT_TIMED_INT8] / 1e3, 1e-9,
         "the plan in which all units are static takes the time of the int8 pass");
    is_int(ft_unit_times_least(&t, unit), all_static, "it is the fastest plan");
    ft_unit_times_fini(&t);
    must(ft_unit_times_init(&t, times, real, unit, units, is_int8, "layer.0.attn.q", &err));
    is_int(ft_unit_times_of_plan(&t, precision) - all_static, 30000,
           "a matrix that a rule leaves float takes its float time in every plan");
    ft_unit_times_fini(&t);
    is_int(ft_time_budget_check(all_static, ft_ms_of_ns(all_static), "m.ft", "t.json", &err), FT_OK,
           "a budget of the fastest plan is enough");
    is_int(ft_time_budget_check(all_static, 0.01, "m.ft", "t.json", &err), FT_EARG,
           "a smaller budget is refused");
    has(err.text, "m.ft: --budget ms=0.01 is too small: the fastest plan takes 0.1",
        "the error names the least possible");
    free(unit);
}

/* Damages one name or shape of the times. */
static void test_other_models(void)
{
    static const damage others[] = {
        { "layer.1.ffn.up.weight", "layer.9.ffn.up.weight", FT_EARG,
          "found no time of linear layer.1.ffn.up.weight in scheme float" },
        { "\"rows\": 8, \"cols\": 8", "\"rows\": 8, \"cols\": 9", FT_EARG,
          "found a weight of 8 x 9, expected 8 x 8" },
    };
    ft_unit *unit;
    size_t units;
    must(ft_units_find(&unit, &units, real, is_int8, NULL, &err));
    for (size_t i = 0; i < FT_COUNT(others); i++) {
        const char *data = make_times("-"), *at = strstr(data, others[i].from);
        static char changed[TEXT_BYTES + 64];
        ft_measured_times times;
        ft_unit_times t;
        snprintf(changed, sizeof changed, "%.*s%s%s", (int) (at - data), data, others[i].to,
                 at + strlen(others[i].from));
        must(ft_measured_times_parse(&times, "other.json", changed, strlen(changed), &err));
        is_int(ft_unit_times_init(&t, &times, real, unit, units, is_int8, NULL, &err), FT_EARG,
               "times of another model are refused: %s", others[i].to);
        has(err.text, others[i].message, "the error says: %s", others[i].message);
        has(err.text, "measure this model", "the error says what to do");
        ft_unit_times_fini(&t);
        ft_measured_times_fini(&times);
    }
    free(unit);
    ft_measured_times none;
    int64_t ns;
    must(ft_measured_times_parse(&none, "good.json", good, strlen(good), &err));
    is_int(ft_pass_ns(&ns, &none, FT_TIMED_W4A16, &err), FT_EARG, "a missing scheme is refused");
    has(err.text, "found no times of scheme w4a16, expected those of every scheme",
        "the error names the scheme that is missing");
    ft_measured_times_fini(&none);
}

/* ---- Choices ------------------------------------------------------------------------------- */

/*
 * Two units of equal loss.  The first has more multiply-adds, so that float costs it more in the
 * fixed model; on the target machine the second is slower.
 */
static void test_reversed_order(void)
{
    static const ft_unit unit[2] = { { .name = "large", .value = { 0 }, .values = 1, .macs = 900 },
                                     { .name = "small", .value = { 0 }, .values = 1, .macs = 10 } };
    static int64_t ns[2][FT_PRECISIONS] = { { 10, 11, 12, 20 }, { 10, 11, 12, 60 } };
    static double loss[2][FT_PRECISIONS] = { { 1.0, 0.9, 0.8, 0.0 }, { 1.0, 0.9, 0.8, 0.0 } };
    const ft_unit_times times = { .unit = ns, .units = 2, .rest = 100 };
    ft_precision found[2];
    ok(ft_unit_cost(&unit[0], real, FT_PRECISION_FLOAT) >
           ft_unit_cost(&unit[1], real, FT_PRECISION_FLOAT),
       "in the fixed model, float costs the larger unit more");
    must(ft_time_plan_solve(found, &times, unit, loss, 131, &err));
    ok(found[0] == FT_PRECISION_FLOAT && found[1] == FT_PRECISION_PER_TOKEN,
       "measured times that reverse this order make the larger unit float");
    must(ft_time_plan_solve(found, &times, unit, loss, 120, &err));
    ok(found[0] == FT_PRECISION_STATIC && found[1] == FT_PRECISION_STATIC,
       "a budget of the fastest plan leaves both static");
    must(ft_time_plan_solve(found, &times, unit, loss, 1000, &err));
    ok((found[0] == FT_PRECISION_FLOAT) != (found[1] == FT_PRECISION_FLOAT),
       "a budget for floats keeps one matrix int8");
    is_int(ft_time_plan_solve(found, &times, unit, loss, 119, &err), FT_EARG,
           "a budget below the fastest plan is refused");
}

/* Calibrates with ranges that clip two values of five. */
static ft_report calibrate(const char *fast, double ms, ft_scheme scheme, ft_status expected)
{
    static ft_recipe recipe;
    const char *data = make_times(fast);
    char file[CALIBRATED_PATH + 16];
    ft_report report;
    snprintf(file, sizeof file, "%s.json", files.real);
    FILE *out = fopen(file, "w");
    if (out == NULL || fputs(data, out) < 0 || fclose(out) != 0)
        bail_out("%s: cannot write", file);
    recipe = (ft_recipe){ .scheme = scheme };
    const ft_calibration_options job = { .input = files.real,
                                         .output = files.quantized,
                                         .data = files.samples,
                                         .eval = files.samples,
                                         .method = FT_METHOD_PERCENTILE,
                                         .percentile = 60.0,
                                         .recipe = &recipe,
                                         .budget = { .ms = ms },
                                         .times = file,
                                         .force = true,
                                         .threads = 1 };
    is_int(ft_calibrate(&job, NULL, &report, &err), expected,
           "a calibration for %g ms as %s, with fast %s, ends as expected", ms,
           ft_scheme_name(scheme), fast);
    return report;
}

static ft_scheme scheme_of(const ft_report *report, const char *matrix)
{
    for (size_t i = 0; i < report->weights; i++)
        if (strcmp(report->weight[i].name, matrix) == 0)
            return report->weight[i].scheme;
    bail_out("%s is missing", matrix);
}

static void test_int8_plans(double least)
{
    ft_report tight = calibrate("-", least, FT_SCHEME_W8A8, FT_OK);
    ok(tight.mixed.in_float == 0 && tight.mixed.ms == least,
       "a budget of the int8 pass gives scales per token only where they take no time");
    ft_report ample = calibrate("-", 100.0, FT_SCHEME_W8A8, FT_OK);
    ok(ample.mixed.loss < tight.mixed.loss && ample.mixed.in_float > 0,
       "an ample budget is spent on floats, and lowers the loss");
    ok(ample.mixed.ms > least && ample.mixed.ms <= 100.0 && ample.mixed.budget_ms == 100.0,
       "the report has the estimated time and the budget");
    ft_report_fini(&tight);
    ft_report_fini(&ample);
    for (int layer = 0; layer < 2; layer++) {
        char fast[64], slow[64];
        snprintf(fast, sizeof fast, "layer.%d.ffn.down.weight", layer);
        snprintf(slow, sizeof slow, "layer.%d.ffn.down.weight", 1 - layer);
        ft_report one = calibrate(fast, least, FT_SCHEME_W8A8, FT_OK);
        ok(scheme_of(&one, fast) == FT_SCHEME_FLOAT && scheme_of(&one, slow) != FT_SCHEME_FLOAT,
           "%s becomes float where that is faster, and no other matrix in its place", fast);
        ok(one.mixed.ms <= least, "the plan is within the budget");
        ft_report_fini(&one);
    }
    ft_report none = calibrate("-", 0.9 * least, FT_SCHEME_W8A8, FT_EARG);
    has(err.text, "is too small: the fastest plan takes", "a budget that is too small is refused");
    ft_report_fini(&none);
}

static void test_weight_plans(double least)
{
    ft_report tight = calibrate("-", least, FT_SCHEME_W4A16, FT_OK);
    ok(tight.weight_plan.eight_bits == 0 && tight.weight_plan.in_float == 0 &&
           tight.weight_plan.ms == least,
       "a budget of the w4a16 pass leaves 4 bits to all matrices");
    ft_report one = calibrate("layer.1.attn.out", least, FT_SCHEME_W4A16, FT_OK);
    ok(scheme_of(&one, "layer.1.attn.out.weight") == FT_SCHEME_FLOAT,
       "a matrix that is faster in float than in 4 bits becomes float");
    ft_report ample = calibrate("-", 100.0, FT_SCHEME_W4A16, FT_OK);
    is_int((long long) ample.weight_plan.in_float, 11, "an ample budget keeps one of 12 quantized");
    ok(ample.weight_plan.loss < tight.weight_plan.loss, "it loses less");
    ft_report none = calibrate("-", 0.9 * least, FT_SCHEME_W4A16, FT_EARG);
    has(err.text, "is too small: the fastest plan takes", "a budget that is too small is refused");
    ft_report_fini(&tight);
    ft_report_fini(&one);
    ft_report_fini(&ample);
    ft_report_fini(&none);
}

int main(void)
{
    tiny t;
    tiny_make(&t, TINY_BERT, "");
    calibrated_make(&files, &t);
    real = calibrated_open(files.real, NULL);
    ft_measured_times times = parse_times("-");
    test_file();
    test_damages();
    test_units(&times);
    test_other_models();
    test_reversed_order();
    test_int8_plans(times.pass_us[FT_TIMED_INT8] / 1e3);
    test_weight_plans(times.pass_us[FT_TIMED_W4A16] / 1e3);
    ft_measured_times_fini(&times);
    ft_model_close(real);
    tiny_remove(&t);
    return done_testing();
}
