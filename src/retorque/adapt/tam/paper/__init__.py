"""TAM with exactly the paper's inputs: nothing that the robot's profile, a test payload or the armature would add."""
