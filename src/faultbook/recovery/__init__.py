"""Recovery of agents: what it rescues, what it harms, and when to intervene."""
