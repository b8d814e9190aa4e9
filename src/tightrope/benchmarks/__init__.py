"""The benchmark families, and the instances of them that `bench:NAME(ARGS)` names."""
