/*
 * report_html.h - the calibration report as a page for browsers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_REPORT_HTML_H
#define FT_CALIBRATE_REPORT_HTML_H

#include "calibrate/report/report.h"

/* Whether a file of that name is to be a page: it ends in .html or .htm, in any case. */
bool ft_report_path_is_html(const char *path);

/*
 * Write the report with its warning as one self-contained page.  The same report gives the same
 * bytes.  The caller checks the stream for errors.  FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_report_write_html(const ft_report *report, FILE *file, ft_error *err);

#endif
