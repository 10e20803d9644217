"""The parts that the rules of several families share."""
