"""What a solve hands over, and how it is played: stored layers, policies, simulation."""
