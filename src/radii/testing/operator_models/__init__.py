"""Random small ONNX models, one strategy for each operator that networks may use.

Attributes, opset, shapes and the place of constants are drawn by hypothesis; weights come from a
seeded generator. Every model is valid for ONNX Runtime.
"""
