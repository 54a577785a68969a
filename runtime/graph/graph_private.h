/*
 * graph_private.h - helpers that the source files of the graph builder share.  They prefix names
 * with the scope.  After an error, which the graph keeps, results are -1.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_GRAPH_GRAPH_PRIVATE_H
#define FT_RUNTIME_GRAPH_GRAPH_PRIVATE_H

#include "runtime/graph/graph.h"

/* Keep the error unless there is an earlier one; returns -1. */
int ft_graph_fail(ft_graph *graph, ft_status status, const char *name, const char *reason);

const ft_value *ft_graph_value(const ft_graph *graph, int index);

/* Add a float value [rows, cols] named NAME SUFFIX; returns its index. */
int ft_graph_result(ft_graph *graph, const char *name, const char *suffix, ft_rows rows,
                    int32_t cols);

/* The state [rows, cols] named NAME SUFFIX, which persists between forward passes; added on the
 * first call with that name. */
int16_t ft_graph_state(ft_graph *graph, const char *name, const char *suffix, ft_rows rows,
                       int32_t cols, ft_dtype dtype);

/* Append an operation; returns its result. */
int ft_graph_append(ft_graph *graph, const char *name, const ft_op *op);

#endif
