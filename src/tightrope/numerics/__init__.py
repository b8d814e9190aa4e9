"""Arrays, exact rationals, outward rounding, compiled kernels, and the solvers behind one small face each."""
