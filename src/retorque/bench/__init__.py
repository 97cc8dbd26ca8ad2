"""One file for each published table: it runs it and prints ours beside theirs."""
