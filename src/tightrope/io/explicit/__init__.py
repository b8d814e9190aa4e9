"""PRISM's explicit files: a model as text files with one base name (`read` has an example of each).

| file | holds |
|---|---|
| `m.tra` | transitions, with probabilities or intervals, and actions |
| `m.lab` | labels, "init" among them |
| `m.sta` | the values of the variables in each state |
| `m.srew`, `m1.srew`, … | rewards of states |
| `m.trew`, `m1.trew`, … | rewards of transitions |

Numbers are doubles, so models are `MDP` or `IntervalMDP`. Models with parameters need DRN.
"""
