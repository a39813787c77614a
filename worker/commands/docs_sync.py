"""`docs-sync`: bring a Docusaurus tree into the `docs` collection."""
