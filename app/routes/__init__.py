"""The HTTP interface, one file per noun; app/main.py includes the routers."""
