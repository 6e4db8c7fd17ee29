"""Slow and obvious versions of what is compiled, or quick."""

import numpy as np


def mixture_wealth(payoffs, lows, stakes, mean):
    """Wealth after every round, (n,), of all constant bets together against one mean."""
    total = np.zeros(len(payoffs))
    for s, low in enumerate(lows):
        for stake in stakes:
            bet = stake / (mean + low)
            total += np.cumprod(1.0 + bet * (payoffs[:, s] - mean))
    return total / (len(lows) * len(stakes))


def first_time(wealth, goal):
    """First round at which the goal is reached; the number of rounds if it never is."""
    reached = np.flatnonzero(wealth >= goal)
    return int(reached[0]) if reached.size else len(wealth)


def planned_wealth(payoffs, low, plan, cap, mean):
    return np.cumprod(1.0 + np.minimum(plan, cap / (mean + low)) * (payoffs - mean))


def bernstein(payoffs, low, delta):
    """Bounds after every round by the formula, one term after another."""
    scale, bounds = 1.0 + low, []
    top = bottom = squares = 0.0
    mean, variance = 0.5, 0.25
    for t, x in enumerate(payoffs, start=1):
        bet = min(scale * np.sqrt(2 * np.log(1 / delta) / (variance * t * np.log(t + 1))), 0.5)
        guess = min(max(mean, -low), 1.0)
        top += bet * x / scale - (-np.log(1 - bet) - bet) * ((x - guess) / scale) ** 2
        bottom += bet
        bounds.append(scale * (top - np.log(1 / delta)) / bottom)
        mean = (0.5 + sum(payoffs[:t])) / (t + 1)
        squares += (x - mean) ** 2
        variance = (0.25 + squares) / (t + 1)
    return np.maximum.accumulate(bounds)


def drifting_wealth(payoffs, guesses, low, bets, mean):
    """Log wealth after the last round if the means were `mean` on average."""
    z, centre = payoffs / (1 + low), guesses / (1 + low)
    total, squares = z.sum(), ((z - centre) ** 2).sum()
    powers = [bet * (total - len(z) * mean / (1 + low)) - (-np.log(1 - bet) - bet) * squares for bet in bets]
    return float(np.logaddexp.reduce(powers) - np.log(len(bets)))


def predictable_ridge(features, index, rewards, ridge, growth):
    """Predictions of all candidates, (n, K), by a regression on the rounds before, solved as they grow."""
    n, arms, columns = features.shape
    out, solved_at, weights, level = np.zeros((n, arms)), -1, np.zeros(columns), 0.0
    for t in range(n):
        if solved_at < 0 or t >= max(solved_at + 1, int(growth * solved_at)):
            solved_at = t
            if t:
                rows, y = features[np.arange(t), index[:t]], rewards[:t]
                centred = rows - rows.mean(axis=0)
                spread = centred.var(axis=0)
                free = spread > 1e-12
                gram = centred[:, free].T @ centred[:, free] + ridge * np.diag(spread[free])
                weights = np.zeros(columns)
                weights[free] = np.linalg.solve(gram, centred[:, free].T @ (y - y.mean()))
                level = y.mean() - rows.mean(axis=0) @ weights
        out[t] = features[t] @ weights + level
    return out
