"""The language of operations and the law: what may be asked, and what is right."""
