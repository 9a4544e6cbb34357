"""The Report object, whose JSON schema is the contract, and its renderers."""
