"""Storm's explicit format DRN: `parse` handles lines, `read` checks the whole file, `write` writes it.

@type: MDP
@value_type: parametric
@parameters
p
@placeholders
$0 : 1/2*p + 3/10
@nr_states
2
@model
state 0 [0] init
    action go [1.5]
        0 : $0
        1 : -1/2*p + 7/10
"""
