"""The Torque Adaptation Module: data, network, training, weights and a runtime without PyTorch."""
