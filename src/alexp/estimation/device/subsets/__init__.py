"""All subsets of one size as models, enumerated and never listed: on a GPU, or slowly on the CPU.

Every subset's posterior follows from sums that all of them share, a P x P matrix and P products with the rewards. One
reward changes these alone; a decision makes each subset's small posterior anew, in registers, and keeps none of them.
Mean and covariance of the coefficients under the mixture of all subsets are a vector (P,) and a matrix (P, P), gathered
pair by pair of columns without any order of summation being left to chance, and the candidates see nothing else.
"""
