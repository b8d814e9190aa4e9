"""The checker of certificates, a program of its own: it needs numpy and nothing of tightrope.

`README.md` leads through its files; `proofs/certificates.md` has the theorems.
"""

__version__ = "0.3.0.dev0"
