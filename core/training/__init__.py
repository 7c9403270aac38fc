"""The loop, its probe frames and its checkpoints. `core.training.prepare` is torch-free; the rest imports torch."""
