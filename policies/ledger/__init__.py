"""The ledger beside the chapters: what they tell, entry by entry, each borne out by its span."""
