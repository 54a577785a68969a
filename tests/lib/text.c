/*
 * text.c - plans as text, and comparison with golden files line by line.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/text.h"

#include "runtime/graph/plan.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

char *plan_text(const ft_plan *plan)
{
    char *text = NULL;
    size_t bytes = 0;
    ft_error err;
    FILE *file = open_memstream(&text, &bytes);
    if (file == NULL)
        bail_out("out of memory: text");
    if (ft_plan_write(plan, file, &err) != FT_OK)
        bail_out("%s", err.text);
    fclose(file);
    return text;
}

/* Length of the first line of `text`, without its end. */
static int line_length(const char *text)
{
    return (int) strcspn(text, "\n");
}

void is_golden(const char *text, const char *name)
{
    char path[1024], line[1024];
    const char *top = getenv("FT_SRCDIR");
    snprintf(path, sizeof path, "%s/tests/golden/%s", top == NULL ? "." : top, name);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        bail_out("cannot read %s", path);
    int number = 1;
    while (fgets(line, sizeof line, file) != NULL) {
        size_t length = strlen(line);
        if (strncmp(text, line, length) != 0)
            break;
        text += length;
        number++;
    }
    bool same = feof(file) && *text == '\0';
    if (!ok(same, "the output equals the golden file %s", name)) {
        diag("line %d found    %.*s", number, line_length(text), text);
        diag("line %d expected %.*s", number, feof(file) ? 0 : line_length(line), line);
    }
    fclose(file);
}
