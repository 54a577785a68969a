"""bert_onnx.py - a BERT encoder as an ONNX graph, built from a checkpoint's weights.

The graph is the one that exporters produce for a BERT (one MatMul + Add per linear, attention from
Reshape, Transpose, MatMul, Softmax), because ONNX Runtime's optimizer recognises and fuses that
form.  build() makes an encoder of rows of one length; build_embedding() one of sentences with an
attention mask, mean pooling and normalization.  There is only the first segment.

SPDX-License-Identifier: Apache-2.0
"""
import math

import numpy as np
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
MASKED = -10000.0       # added to the scores of padding; the optimizer knows this value


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
        self.mask = None        # name of [batch, 1, 1, length], added to the scores
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
        if self.mask is not None:
            y = self.g.op("Add", y, self.mask, out=name + ".masked")
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

    def add_mask(self, mask):
        """Exclude the keys where `mask`, int64 [batch, length], is 0."""
        one, masked = (self.g.constant(f"number.{value}", np.array(value, np.float32))
                       for value in (1.0, MASKED))
        for axis in (1, 2):
            place = self.g.constant(f"axis.{axis}", np.array([axis]))
            mask = self.g.op("Unsqueeze", mask, place, out=f"mask.{axis}")
        mask = self.g.op("Cast", mask, out="mask.float", to=TensorProto.FLOAT)
        mask = self.g.op("Sub", one, mask, out="mask.padding")
        self.mask = self.g.op("Mul", mask, masked, out="mask")

    def positions(self, ids, length):
        """Embeddings of the positions and of the first segment; length None: that of `ids`."""
        position, segment = (self.tensor(f"embeddings.{part}_embeddings.weight")
                             for part in ("position", "token_type"))
        table = self.g.constant("position", position[:length] + segment[0])
        if length is not None:
            return table
        zero, one = (self.g.constant(f"axis.{i}", np.array([i])) for i in (0, 1))
        end = self.g.op("Gather", self.g.op("Shape", ids, out="shape"), one, out="length")
        return self.g.op("Slice", table, zero, end, zero, out="embeddings.position")

    def embed(self, ids, length):
        table = self.g.constant("word", self.tensor("embeddings.word_embeddings.weight"))
        x = self.g.op("Gather", table, ids, out="embeddings.word")
        return self.norm("embeddings.LayerNorm", self.g.op("Add", x, self.positions(ids, length),
                                                           out="embeddings.sum"))

    def last_hidden_state(self, ids, length, layers):
        x = self.embed(ids, length)
        for i in range(layers):
            x = self.layer(f"encoder.layer.{i}", x)
        return x

    def pool(self, x, mask):
        """The mean of the rows of `x` where `mask` is 1, divided by its length."""
        rows, column = (self.g.constant(f"axis.{axis}", np.array([axis])) for axis in (1, -1))
        mask = self.g.op("Cast", mask, out="pool.float", to=TensorProto.FLOAT)
        mask = self.g.op("Unsqueeze", mask, column, out="pool.mask")
        total = self.g.op("ReduceSum", self.g.op("Mul", x, mask, out="pool.masked"), rows,
                          out="pool.sum", keepdims=0)
        count = self.g.op("ReduceSum", mask, rows, out="pool.count", keepdims=0)
        mean = self.g.op("Div", total, count, out="pool.mean")
        norm = self.g.op("ReduceL2", mean, out="pool.norm", axes=[-1], keepdims=1)
        return self.g.op("Div", mean, norm, out="pool")


def model(graph, inputs, output, shape):
    """ONNX model whose inputs are int64 [batch, length], { name: [batch, length] }."""
    graph.nodes[-1].output[0] = output
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, dims)
              for name, dims in inputs.items()]
    out = helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)
    body = helper.make_graph(graph.nodes, "bert", inputs, [out], list(graph.constants.values()))
    return helper.make_model(body, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


def build(weights, config, length):
    """ONNX model: input_ids int64 [batch, length] -> last_hidden_state [batch, length, hidden]."""
    graph = Graph()
    Encoder(graph, weights, config).last_hidden_state("input_ids", length,
                                                      config["num_hidden_layers"])
    return model(graph, {"input_ids": ["batch", length]}, "last_hidden_state",
                 ["batch", length, config["hidden_size"]])


def build_embedding(weights, config):
    """
    ONNX model: input_ids and attention_mask int64 [batch, length], for any length ->
    embedding [batch, hidden], mean pooled and normalized.
    """
    graph = Graph()
    encoder = Encoder(graph, weights, config)
    encoder.add_mask("attention_mask")
    x = encoder.last_hidden_state("input_ids", None, config["num_hidden_layers"])
    encoder.pool(x, "attention_mask")
    return model(graph, {name: ["batch", "length"] for name in ("input_ids", "attention_mask")},
                 "embedding", ["batch", config["hidden_size"]])
