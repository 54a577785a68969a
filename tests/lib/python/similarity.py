"""similarity.py - how alike two sets of embeddings are: arrays with a row for each sentence.

SPDX-License-Identifier: Apache-2.0
"""
import numpy as np


def unit(vectors):
    """Rows of length 1."""
    vectors = vectors.astype(np.float64)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def cosines(a, b):
    """Cosine of each row of `a` with the same row of `b`."""
    return (unit(a) * unit(b)).sum(1)


def pair_similarities(vectors):
    """Cosine of every pair of different rows."""
    similar = unit(vectors) @ unit(vectors).T
    return similar[np.triu_indices(len(vectors), 1)]


def ranks(values):
    """Ranks from 1; equal values share the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]


def spearman_of_pairs(a, b):
    """Spearman's correlation of the similarities of all pairs of rows, in `a` and in `b`."""
    ranked = [ranks(pair_similarities(vectors)) for vectors in (a, b)]
    return float(np.corrcoef(*ranked)[0, 1])
