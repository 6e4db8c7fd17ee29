"""The paper, reproduced: its runs, figures, claims and hyper-parameters."""
