"""Certificates, and the checker that shares no code with what it checks: `docs/trust.md` is the guide."""
