"""A forger with full knowledge of code and format, against the checker of certificates.

The rules: model, property, data and δ stay honest, everything else in the file is his. `honest` makes the
files he starts from, `archive` takes them apart and puts them together again under a fitting digest,
`attacks_*` and `mutations` are what he tries. `truth_*` say what may be claimed, in exact rationals or by
points that provably lie in the honest region. A claim that `verify` accepts and the truth does not allow is a
failure, whatever led there.
"""
