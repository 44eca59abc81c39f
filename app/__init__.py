"""The web application: knows HTTP, never does tensor maths."""
