"""Pure passes: every transformation is a function from jaxprs and plain data to jaxprs."""
