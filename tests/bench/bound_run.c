/*
 * bound_run.c - time of a forward pass through ft.h alone: bound_run MODEL.ft [-r 20000].
 *
 * Sets input_ids [1, 4], runs a classifier, and gets its logits.  Prints "us MEDIAN MIN" of r
 * passes on one thread.  tests/bench/python/bound-run.py does the same through bound buffers of
 * ftruntime.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/ft.h"
#include "tests/bench/measure.h"

#include <stdlib.h>
#include <unistd.h>

typedef struct {
    ft_session *session;
    ft_tensor ids, logits;
    ft_error err;
} pass;

static bool run(pass *p)
{
    return ft_session_set(p->session, "input_ids", &p->ids, &p->err) == FT_OK &&
           ft_session_run(p->session, &p->err) == FT_OK &&
           ft_session_get(p->session, "logits", &p->logits, &p->err) == FT_OK;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

/* Time all passes; false after an error. */
static bool measure(pass *p, double *us, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double begin = seconds_of(CLOCK_MONOTONIC);
        if (!run(p))
            return false;
        us[i] = 1e6 * (seconds_of(CLOCK_MONOTONIC) - begin);
    }
    qsort(us, count, sizeof *us, by_value);
    return true;
}

int main(int argc, char **argv)
{
    int32_t ids[] = { 2, 5, 6, 3 };
    size_t count = 20000;
    for (int option; (option = getopt(argc, argv, "r:")) != -1;)
        count = (size_t) atoi(optarg);
    float *logits = calloc(1 << 16, sizeof *logits);
    double *us = calloc(count, sizeof *us);
    ft_model *model = NULL;
    pass p = { .ids = { FT_I32, FT_ROW, 2, { 1, 4 }, ids }, .logits = { .data = logits } };
    const ft_session_options options = { .threads = 1 };
    bool fine = us != NULL && logits != NULL && optind < argc &&
                ft_model_open(&model, argv[optind], NULL, &p.err) == FT_OK &&
                ft_session_open(&p.session, model, &options, &p.err) == FT_OK &&
                measure(&p, us, count);
    if (fine)
        printf("us %.2f %.2f\n", us[count / 2], us[0]);
    else
        fprintf(stderr, "bound_run: %s\n", p.err.text);
    ft_session_close(p.session);
    ft_model_close(model);
    free(logits);
    free(us);
    return !fine;
}
