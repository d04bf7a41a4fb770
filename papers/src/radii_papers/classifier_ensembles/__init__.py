"""The study of "Robustness Verification for Classifier Ensembles"."""
