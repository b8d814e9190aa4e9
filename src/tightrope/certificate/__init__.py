"""Certificates, and a checker that shares no code with the solver that made them."""
