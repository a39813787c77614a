"""The contract both halves share: the chunk, the pin, the embedding clients and the search engines."""
