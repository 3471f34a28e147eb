import numpy
import openvino
from openvino import opset13 as ops

image = ops.parameter([1, 64, 56, 56], numpy.float32)
weights = numpy.random.default_rng(1).random((64, 64, 3, 3), dtype=numpy.float32)
layer = ops.relu(ops.convolution(image, ops.constant(weights), [1, 1], [1, 1], [1, 1], [1, 1]))
model = openvino.compile_model(openvino.Model([layer], [image]), "CPU")
data = numpy.ones((1, 64, 56, 56), numpy.float32)
for _ in range(600):
    model(data)
