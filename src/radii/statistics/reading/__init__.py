"""Reading: a store, a table or VERONA's folders as a `Run`, the one road to a `Distribution`."""
