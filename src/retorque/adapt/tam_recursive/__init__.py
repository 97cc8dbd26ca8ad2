"""The recursive Bayesian estimator with a learned module that reads what the estimate leaves unexplained."""
