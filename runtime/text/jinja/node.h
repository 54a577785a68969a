/*
 * node.h - the tree of a template.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_JINJA_NODE_H
#define FT_RUNTIME_TEXT_JINJA_NODE_H

#include "runtime/text/jinja/builtins/builtin.h"

/* The comments name the members that a kind uses. */
typedef enum ft_jinja_node_kind {
    /* Expressions */
    FT_JINJA_NODE_CONSTANT,  /* value */
    FT_JINJA_NODE_NAME,      /* symbol, name, builtin: a function with this name, or NULL */
    FT_JINJA_NODE_LIST,      /* list: elements */
    FT_JINJA_NODE_TUPLE,     /* list: elements */
    FT_JINJA_NODE_DICT,      /* list: PAIR */
    FT_JINJA_NODE_PAIR,      /* a: key, b: value */
    FT_JINJA_NODE_ATTRIBUTE, /* a.name */
    FT_JINJA_NODE_ITEM,      /* a[b] */
    FT_JINJA_NODE_SLICE,     /* start a, stop b, step c; each may be NULL */
    FT_JINJA_NODE_CALL,      /* a(list) */
    FT_JINJA_NODE_KEYWORD,   /* name=a, in a list of arguments */
    FT_JINJA_NODE_FILTER,    /* a|builtin(list); a is NULL for the text of a block */
    FT_JINJA_NODE_TEST,      /* a is builtin(list) */
    FT_JINJA_NODE_NOT,       /* a */
    FT_JINJA_NODE_AND,       /* a, b */
    FT_JINJA_NODE_OR,        /* a, b */
    FT_JINJA_NODE_NEGATE,    /* a */
    FT_JINJA_NODE_PLUS,      /* a */
    FT_JINJA_NODE_BINARY,    /* a op b */
    FT_JINJA_NODE_CONCAT,    /* list ~ list */
    FT_JINJA_NODE_COMPARE,   /* a, then list: OPERAND */
    FT_JINJA_NODE_OPERAND,   /* comparison, a */
    FT_JINJA_NODE_IF_ELSE,   /* a if b else c; c may be NULL */
    /* Statements */
    FT_JINJA_NODE_DATA,         /* value */
    FT_JINJA_NODE_OUTPUT,       /* a */
    FT_JINJA_NODE_FOR,          /* for a in b if c: body, otherwise */
    FT_JINJA_NODE_IF,           /* if a: body, otherwise: the next IF, or statements */
    FT_JINJA_NODE_SET,          /* a = b */
    FT_JINJA_NODE_SET_BLOCK,    /* a = body, through the filters b */
    FT_JINJA_NODE_MACRO,        /* symbol, name, list: PARAMETER, body */
    FT_JINJA_NODE_PARAMETER,    /* symbol, name, a: its default, or NULL */
    FT_JINJA_NODE_CALL_BLOCK,   /* the CALL a, with the macro b as its caller */
    FT_JINJA_NODE_FILTER_BLOCK, /* body through the filters a */
    FT_JINJA_NODE_WITH,         /* list: SET; body */
    FT_JINJA_NODE_GENERATION,   /* body, which transformers marks as the assistant's */
    FT_JINJA_NODE_BREAK,
    FT_JINJA_NODE_CONTINUE,
} ft_jinja_node_kind;

typedef enum ft_jinja_comparison {
    FT_JINJA_EQ,
    FT_JINJA_NE,
    FT_JINJA_LT,
    FT_JINJA_LE,
    FT_JINJA_GT,
    FT_JINJA_GE,
    FT_JINJA_IN,
    FT_JINJA_NOT_IN,
} ft_jinja_comparison;

typedef struct ft_jinja_node ft_jinja_node;
struct ft_jinja_node {
    ft_jinja_node_kind kind;
    uint32_t line;
    union {
        ft_jinja_operator op;
        ft_jinja_comparison comparison;
        uint32_t symbol; /* number of a name in the template */
    };
    const char *name;
    const ft_jinja_builtin *builtin;
    ft_jinja_value value;
    const ft_jinja_node *a, *b, *c;
    const ft_jinja_node *list, *body, *otherwise; /* first of a list, which goes on with `next` */
    ft_jinja_node *next;
};

typedef struct ft_jinja_symbol {
    const char *name;
    struct ft_jinja_symbol *next; /* with the same hash */
    uint32_t number;
} ft_jinja_symbol;

enum { FT_JINJA_SYMBOL_BUCKETS = 1024 };

struct ft_jinja_template {
    char *name; /* owned */
    ft_jinja_arena arena;
    const ft_jinja_node *body;
    ft_jinja_symbol *bucket[FT_JINJA_SYMBOL_BUCKETS];
    uint32_t symbols;
    uint32_t loop, caller; /* numbers of these names */
};

#endif
