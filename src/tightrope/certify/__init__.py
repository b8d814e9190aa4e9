"""From results to certificates: the problem, claims and hints that the checker asks for."""
