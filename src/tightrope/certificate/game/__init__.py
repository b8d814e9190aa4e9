"""Two bounds for every state: are they inductive, and does the play behind them stop?"""
