"""Rules of user functions, traced when a transformation asks for them."""
