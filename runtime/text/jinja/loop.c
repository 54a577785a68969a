/*
 * loop.c - for loops.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/interpreter.h"

/* The elements for which the condition of the loop holds, in a scope with the target alone. */
static ft_jinja_list *filtered(ft_jinja_interpreter *in, const ft_jinja_node *node,
                               const ft_jinja_list *all)
{
    ft_jinja_list *some = ft_jinja_list_new(&in->run, FT_JINJA_PLAIN_LIST, 0);
    for (size_t i = 0; i < all->count; i++) {
        ft_jinja_scope *before = ft_jinja_open_scope(in, in->scope);
        ft_jinja_assign_target(in, node->a, all->item[i]);
        if (ft_jinja_truth(ft_jinja_evaluate(in, node->c)))
            ft_jinja_append(&in->run, some, all->item[i]);
        in->scope = before;
    }
    return some;
}

/* One turn has a scope of its own: what it assigns is gone afterwards. */
static ft_jinja_flow run_turn(ft_jinja_interpreter *in, const ft_jinja_node *node,
                              const ft_jinja_loop *loop)
{
    ft_jinja_scope *before = ft_jinja_open_scope(in, in->scope);
    ft_jinja_assign(in, in->template->loop, (ft_jinja_value){ FT_JINJA_LOOP, { .loop = loop } });
    ft_jinja_assign_target(in, node->a, loop->list->item[loop->index]);
    ft_jinja_flow flow = in->execute(in, node->body);
    in->scope = before;
    return flow;
}

ft_jinja_flow ft_jinja_execute_for(ft_jinja_interpreter *in, const ft_jinja_node *node)
{
    const ft_jinja_list *list = ft_jinja_iterate(&in->run, ft_jinja_evaluate(in, node->b));
    if (node->c != NULL)
        list = filtered(in, node, list);
    ft_jinja_loop *loop = FT_JINJA_NEW(&in->run, ft_jinja_loop);
    *loop = (ft_jinja_loop){ .list = list };
    ft_jinja_flow flow = FT_JINJA_NEXT;
    for (; loop->index < list->count && flow != FT_JINJA_BREAK; loop->index++)
        flow = run_turn(in, node, loop);
    if (list->count == 0 && node->otherwise != NULL) {
        ft_jinja_scope *before = ft_jinja_open_scope(in, in->scope);
        flow = in->execute(in, node->otherwise);
        in->scope = before;
        return flow;
    }
    return FT_JINJA_NEXT;
}
