"""Learning while data are collected by the policy that is being learned."""
