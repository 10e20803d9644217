"""What is made when it is first used: names of packages, methods of dataclasses."""
