"""The recipe that makes `umpire-mini`, a model package of the `two-stage` family."""
