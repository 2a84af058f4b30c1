"""The hunt: drawn worlds by the thousand, in which nothing may be wrong and everything be seen."""
