"""What each command does, once its options are known; one file a command, imported only when it runs."""
