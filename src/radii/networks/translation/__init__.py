"""From ONNX nodes to operators: one translator for each ONNX operator."""
