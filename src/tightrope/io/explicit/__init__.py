"""PRISM's explicit files: a model as a few text files with one base name.

| file | holds | see |
|---|---|---|
| `m.tra` | transitions, with probabilities or intervals, and actions | `read` |
| `m.lab` | labels, "init" among them | `read` |
| `m.sta` | the values of the variables in each state | `read` |
| `m.srew`, `m1.srew`, … | rewards of states | `read` |
| `m.trew`, `m1.trew`, … | rewards of transitions | `read` |

The numbers are doubles, so models read from here are `MDP` or `IntervalMDP`, and a model with
parameters cannot be written; DRN can hold it.
"""
