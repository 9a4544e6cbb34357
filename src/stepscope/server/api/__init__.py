"""The routes below api/."""
