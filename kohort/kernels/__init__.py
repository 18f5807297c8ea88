"""The hot loops, compiled by numba; imported where they are used, never at start-up.

Two-dimensional arguments are Fortran-ordered (each attribute contiguous, as Arrow holds it) unless a
kernel says otherwise.
"""
