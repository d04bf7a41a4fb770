"""The methods of "Robustness Verification for Classifier Ensembles", for comparison.

They fix the number of attacks beforehand and encode every attack, point and classifier in one
problem: for an SMT solver (`solve_smt`) or an integer programming solver, as a feasibility problem
(`solve_milp`) or with an objective that sums over classifiers (`solve_milp(maximise=True)`). The
simple attackers combine attacks on single classifiers.
"""
