"""The demonstration: a real llama-server, a scripted person, and what happens between them."""
