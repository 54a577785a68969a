"""lean_bert.py - a minimal BERT encoder for PyTorch: queries, keys and values are one linear, and
there is no mask, dropout or optional output.

SPDX-License-Identifier: Apache-2.0
"""
import torch
from torch import nn
from torch.nn import functional


class Layer(nn.Module):
    """One post-norm encoder layer."""

    def __init__(self, hidden, heads, ffn):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.out = nn.Linear(hidden, hidden)
        self.up = nn.Linear(hidden, ffn)
        self.down = nn.Linear(ffn, hidden)
        self.norm1 = nn.LayerNorm(hidden, eps=1e-12)
        self.norm2 = nn.LayerNorm(hidden, eps=1e-12)

    def forward(self, x):
        rows, length, hidden = x.shape
        qkv = self.qkv(x).view(rows, length, 3, self.heads, hidden // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        a = functional.scaled_dot_product_attention(q, k, v)
        x = self.norm1(x + self.out(a.transpose(1, 2).reshape(rows, length, hidden)))
        return self.norm2(x + self.down(functional.gelu(self.up(x))))


class LeanBert(nn.Module):
    """[rows, length] token ids to the last hidden state and the pooled first token."""

    def __init__(self, layers, hidden, heads, ffn, vocabulary, positions):
        super().__init__()
        self.words = nn.Embedding(vocabulary, hidden)
        self.positions = nn.Embedding(positions, hidden)
        self.segments = nn.Embedding(2, hidden)
        self.norm = nn.LayerNorm(hidden, eps=1e-12)
        self.layers = nn.ModuleList(Layer(hidden, heads, ffn) for _ in range(layers))
        self.pooler = nn.Linear(hidden, hidden)

    def forward(self, ids):
        fixed = self.positions.weight[:ids.shape[1]] + self.segments.weight[0]
        x = self.norm(self.words(ids) + fixed)
        for layer in self.layers:
            x = layer(x)
        return x, torch.tanh(self.pooler(x[:, 0]))
