"""Parts of rules that several families share."""
