"""Pure: what a document of each kind says, shows and links to."""
