"""Reports of broken laws, with a test to paste."""
