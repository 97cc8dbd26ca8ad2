"""Planning while the model is being improved: iLQR, identification on a sliding window, and the workers of both."""
