"""Training of policies for the planning tasks; needs PyTorch."""
