"""Task forms, their serialization and their data sets."""
