"""The run: request and plan, agent loop, policy, prompts, tools, memory, delivery, escalation."""
