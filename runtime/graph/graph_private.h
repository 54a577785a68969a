/*
 * graph_private.h - what the files of the builder calls share.  Names are completed by the scope;
 * after a failure, which the graph keeps, results are -1.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_GRAPH_GRAPH_PRIVATE_H
#define FT_RUNTIME_GRAPH_GRAPH_PRIVATE_H

#include "runtime/graph/graph.h"

/* Keep the first failure; returns -1. */
int ft_graph_fail(ft_graph *graph, ft_status status, const char *name, const char *reason);

const ft_value *ft_graph_value(const ft_graph *graph, int index);

/* A new value of floats. */
int ft_graph_result(ft_graph *graph, const char *name, const char *suffix, ft_rows rows,
                    int32_t cols);

/* A value that lives from run to run; the same one for all who name it. */
int16_t ft_graph_state(ft_graph *graph, const char *name, const char *suffix, ft_rows rows,
                       int32_t cols, ft_dtype dtype);

/* Returns what the operation makes. */
int ft_graph_append(ft_graph *graph, const char *name, const ft_op *op);

#endif
