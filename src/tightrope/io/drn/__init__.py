"""Storm's explicit format DRN, read and written.

`parse` handles lines, `read` checks the whole file:

    @type: MDP
    @value_type: parametric
    @parameters
    p
    @placeholders
    $0 : 1/2*p + 3/10
    $1 : -1/2*p + 7/10
    @reward_models
    steps
    @nr_states
    2
    @model
    state 0 [0] init
        action go [1.5]
            0 : $0
            1 : $1
    state 1 [0] goal
        action __NOLABEL__ [0]
            1 : 1
"""
