"""Tasks of contact: drawing, wiping, pressing and turning things, with what plans them."""
