"""Real paired episodes: one agent, one engine, many branches from the very same state."""
