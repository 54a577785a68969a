/*
 * make-report.c - write the page of tests/lib/models/sample_report.h, for shell tests.
 *
 *     make-report LAYERS >FILE
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/report/report_html.h"
#include "calibrate/report/verdict.h"
#include "tests/lib/models/sample_report.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
    ft_report report;
    ft_error err;
    if (argc != 2 || atoi(argv[1]) < 1)
        return 2;
    sample_report_make(&report, (size_t) atoi(argv[1]));
    report.warning = ft_report_warning(&report);
    ft_status status = ft_report_write_html(&report, stdout, &err);
    ft_report_fini(&report);
    return status == FT_OK && fflush(stdout) == 0 ? 0 : 1;
}
