"""The compiled dynamics of a tree, and the compiled work of planning and identification on it."""
