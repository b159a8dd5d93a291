"""Every file format, and the one table that names them."""
