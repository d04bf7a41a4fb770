"""The methods of "Robustness Verification for Classifier Ensembles", for comparison.

They fix the number of attacks beforehand and encode every attack, point and classifier in one
problem: for an SMT solver, or for an integer programming solver, without an objective (MILP) or
with one that adds losses up over classifiers (MaxMILP). The simple attackers, uniform (UA) and best
deterministic (BDA), combine attacks on single classifiers.
"""
