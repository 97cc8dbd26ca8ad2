"""What a control engineer would reach for instead: observer, adaptive control, integral action."""
