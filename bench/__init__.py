"""The gateway measured beside a bare relay on the same server stack: `make bench`."""
