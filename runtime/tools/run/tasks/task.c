/*
 * task.c - the tasks by head.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/run/tasks/task.h"

#include "runtime/mem.h"

static const ft_task tasks[] = {
    { FT_HEAD_TOKENS, { "logits" }, false, ft_report_entities },
    { FT_HEAD_SPAN, { "start_logits", "end_logits" }, true, ft_report_answer },
    { FT_HEAD_LM, { "logits" }, false, ft_report_masks },
};

const ft_task *ft_task_of(ft_head head)
{
    for (size_t i = 0; i < FT_COUNT(tasks); i++)
        if (tasks[i].head == head)
            return &tasks[i];
    return NULL;
}
