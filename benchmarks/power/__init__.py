"""How strong the audit is and how often it cries wolf: leaks, noise, planted secrets, attackers of other makers."""
