"""The report's structs, whose JSON schema is the contract."""
