"""Random well-typed programs and their inputs."""
