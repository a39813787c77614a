"""What people and Prometheus see: logs, metrics and the HTTP status pages."""
