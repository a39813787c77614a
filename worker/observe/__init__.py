"""What people and Prometheus see: metrics, readiness and the HTTP status pages."""
