"""What a consumer does not need: each can be left out, and the core imports none of them."""
