"""The parts that the lowering rules of several families share."""
