"""The read side: everything that answers a question, derived from the ledger and deletable.

`generation` holds the copies and which is in use; `schema` the tables; `projector` what an event
does to them; `rebuild` makes a copy from the first event on; `facts`, `queries` and `search` read;
`digest` proves two copies equal; `integrity` doubts one. Import from the modules: what a process
does not use it does not load.
"""
