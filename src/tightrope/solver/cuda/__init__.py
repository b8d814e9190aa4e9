"""The solver on a GPU: one CUDA file of kernels, the layout of models for it, and the iteration around it.

Nothing here is imported unless a device is asked for.
"""
