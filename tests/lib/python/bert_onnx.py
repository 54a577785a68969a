"""bert_onnx.py - a BERT encoder as an ONNX graph, built from a checkpoint's weights.

The graph is the one that exporters produce for a BERT (one MatMul + Add per linear, attention from
Reshape, Transpose, MatMul, Softmax), because ONNX Runtime's optimizer recognises and fuses that
form.  All rows have the full length, so there is no mask and only the first segment.

SPDX-License-Identifier: Apache-2.0
"""
import math

import numpy as np
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


class Graph:
    """Nodes and constants under construction; every call returns the name of its result."""

    def __init__(self):
        self.nodes, self.constants = [], {}

    def constant(self, name, array):
        if name not in self.constants:
            array = np.ascontiguousarray(array)
            self.constants[name] = numpy_helper.from_array(array, name)
        return name

    def op(self, kind, *inputs, out, **attributes):
        self.nodes.append(helper.make_node(kind, list(inputs), [out], name=out, **attributes))
        return out


class Encoder:
    """BERT's layers, reading checkpoint tensors by name; a name is also that of the result."""

    def __init__(self, graph, weights, config):
        self.g, self.w = graph, weights
        self.heads = config["num_attention_heads"]
        self.head_size = config["hidden_size"] // self.heads
        self.eps = config["layer_norm_eps"]
        self.split = graph.constant("split", np.array([0, 0, self.heads, self.head_size]))
        self.join = graph.constant("join", np.array([0, 0, config["hidden_size"]]))

    def tensor(self, name):
        return self.w[name].astype(np.float32)

    def linear(self, name, x):
        weight = self.g.constant(name + ".weight", self.tensor(name + ".weight").T)
        bias = self.g.constant(name + ".bias", self.tensor(name + ".bias"))
        return self.g.op("Add", self.g.op("MatMul", x, weight, out=name + ".mm"), bias, out=name)

    def norm(self, name, x):
        gain, bias = (self.g.constant(part, self.tensor(part))
                      for part in (name + ".weight", name + ".bias"))
        return self.g.op("LayerNormalization", x, gain, bias, out=name, axis=-1, epsilon=self.eps)

    def gelu(self, name, x):
        """x / 2 (1 + erf(x / sqrt 2)), in the order that the optimizer fuses into one node."""
        number = {value: self.g.constant(f"number.{value}", np.array(value, np.float32))
                  for value in (math.sqrt(2), 1.0, 0.5)}
        erf = self.g.op("Div", x, number[math.sqrt(2)], out=name + ".div")
        erf = self.g.op("Erf", erf, out=name + ".erf")
        erf = self.g.op("Add", erf, number[1.0], out=name + ".one")
        return self.g.op("Mul", self.g.op("Mul", x, erf, out=name + ".mul"), number[0.5], out=name)

    def attention(self, name, x):
        def heads(part, order):
            part = f"{name}.{part}"
            y = self.g.op("Reshape", self.linear(part, x), self.split, out=part + ".split")
            return self.g.op("Transpose", y, out=part + ".heads", perm=order)

        q, k, v = heads("query", [0, 2, 1, 3]), heads("key", [0, 2, 3, 1]), heads("value",
                                                                                  [0, 2, 1, 3])
        root = self.g.constant("root", np.array(math.sqrt(self.head_size), np.float32))
        y = self.g.op("MatMul", q, k, out=name + ".scores")
        y = self.g.op("Div", y, root, out=name + ".scaled")
        y = self.g.op("Softmax", y, out=name + ".softmax", axis=-1)
        y = self.g.op("MatMul", y, v, out=name + ".mix")
        y = self.g.op("Transpose", y, out=name + ".rows", perm=[0, 2, 1, 3])
        return self.g.op("Reshape", y, self.join, out=name)

    def residual(self, name, y, x):
        return self.norm(name + ".LayerNorm", self.g.op("Add", y, x, out=name + ".sum"))

    def layer(self, name, x):
        y = self.attention(f"{name}.attention.self", x)
        y = self.linear(f"{name}.attention.output.dense", y)
        x = self.residual(f"{name}.attention.output", y, x)
        y = self.gelu(f"{name}.gelu", self.linear(f"{name}.intermediate.dense", x))
        return self.residual(f"{name}.output", self.linear(f"{name}.output.dense", y), x)

    def embed(self, ids, length):
        table, position, segment = (self.tensor(f"embeddings.{part}_embeddings.weight")
                                    for part in ("word", "position", "token_type"))
        place = self.g.constant("position", position[:length] + segment[0])
        x = self.g.op("Gather", self.g.constant("word", table), ids, out="embeddings.word")
        return self.norm("embeddings.LayerNorm", self.g.op("Add", x, place, out="embeddings.sum"))


def build(weights, config, length):
    """ONNX model: input_ids int64 [batch, length] -> last_hidden_state [batch, length, hidden]."""
    graph = Graph()
    encoder = Encoder(graph, weights, config)
    x = encoder.embed("input_ids", length)
    for i in range(config["num_hidden_layers"]):
        x = encoder.layer(f"encoder.layer.{i}", x)
    graph.nodes[-1].output[0] = "last_hidden_state"
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", length])
    out = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT,
                                        ["batch", length, config["hidden_size"]])
    body = helper.make_graph(graph.nodes, "bert", [ids], [out], list(graph.constants.values()))
    return helper.make_model(body, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
