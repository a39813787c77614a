"""What several test files share: fakes, servers, processes, the simulation."""
