"""Tests that need scikit-learn, River, pandas, nats-py and Jupyter."""
