"""Measurements: what the parts do beside something bare in the same run. They assert nothing."""
